import { expect, test } from "vitest";
import { converse, NEWS } from "../programs.mjs";
import { withTape } from "../provider.mjs";

const TAPE = "../../recordings/incidents/2-responses-dead-zone/fixed.tape";

test("a call that only the last event of its item names is made", async () => {
  await withTape(TAPE, async () => {
    const said = await converse(NEWS, "Do the ferries in Lisbon sail today?");
    expect(said).toContain("assistant: The ferry strike was called off today.");
  });
});
