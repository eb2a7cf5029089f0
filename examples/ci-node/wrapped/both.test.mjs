// The same for any test runner: the tests know nothing of tapes, `deltatape replay` wraps them.
import { expect, test } from "vitest";
import { converse, DESIGNER, NEWS } from "../programs.mjs";

test("both calls of one reply are made, and both streams are read for calls", async () => {
  const said = await converse(
    DESIGNER,
    "How is the weather on my trip, and where can I eat?",
    "Then just tell me what is planned.",
  );
  expect(said).toContain("designer: It will be sunny");
  expect(said).toContain("designer: Alfama, Sintra");
});

test("a call that only the last event of its item names is made", async () => {
  const said = await converse(NEWS, "Do the ferries in Lisbon sail today?");
  expect(said).toContain("assistant: The ferry strike was called off today.");
});
