// Builds the page into the Python package; with --check, only compares with what is checked in.
import { createHash } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "../proxy/deltatape/inspector/static");

const options = {
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx", style: "src/style.css" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome111", "firefox113", "safari17"],
  jsx: "automatic",
  jsxImportSource: "preact",
  alias: { react: "preact/compat", "react-dom": "preact/compat" },
  legalComments: "none",
  charset: "ascii", // the report embeds the script; no byte of it may depend on a charset
  metafile: true,
  write: false,
};

/** The libraries in the bundle, with version and licence. */
async function libraries(metafile) {
  const names = new Set();
  for (const input of Object.keys(metafile.inputs)) {
    const parts = input.split("/");
    const at = parts.lastIndexOf("node_modules");
    if (at >= 0) {
      names.add(
        parts[at + 1].startsWith("@") ? parts.slice(at + 1, at + 3).join("/") : parts[at + 1],
      );
    }
  }
  const rows = [];
  for (const name of [...names].sort()) {
    const about = JSON.parse(
      await readFile(join(here, "node_modules", name, "package.json"), "utf8"),
    );
    rows.push(`${name} ${about.version} (${about.license})`);
  }
  return `Libraries in app.js and style.css, with their licences:\n\n${rows.join("\n")}\n`;
}

async function build() {
  const result = await esbuild.build(options);
  const files = new Map(
    result.outputFiles.map((file) => [relative(out, file.path).split(sep).join("/"), file.text]),
  );
  files.set("LIBRARIES.txt", await libraries(result.metafile));
  files.set("index.html", await readFile(join(here, "src/index.html"), "utf8"));
  return files;
}

const digest = (text) => createHash("sha256").update(text).digest("hex").slice(0, 12);

if (process.argv.includes("--check")) {
  const files = await build();
  const stale = [];
  for (const [name, text] of files) {
    const there = await readFile(join(out, name), "utf8").catch(() => "");
    if (digest(there) !== digest(text)) stale.push(name);
  }
  for (const name of await readdir(out)) if (!files.has(name)) stale.push(name);
  if (stale.length) {
    console.error(`not built from web/src: ${stale.join(", ")}; run: npm run build --prefix web`);
    process.exit(1);
  }
} else if (process.argv.includes("--watch")) {
  const context = await esbuild.context({
    ...options,
    plugins: [
      {
        name: "write",
        setup(api) {
          api.onEnd(async () => {
            for (const [name, text] of await build()) await writeFile(join(out, name), text);
          });
        },
      },
    ],
  });
  await context.watch();
} else {
  for (const [name, text] of await build()) await writeFile(join(out, name), text);
}
