import { render } from "preact";
import { App } from "./app";
import { go, toExchange } from "./router";
import { start } from "./source";
import "./print";
import "./theme";

// A report opens on its exchange.
if (start && !location.hash) go(toExchange(start), "replace");

const root = document.getElementById("app");
if (root) render(<App />, root);
