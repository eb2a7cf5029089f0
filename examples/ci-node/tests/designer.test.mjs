import { expect, test } from "vitest";
import { converse, DESIGNER } from "../programs.mjs";
import { withTape } from "../provider.mjs";

const TAPE = "../../recordings/incidents/1-index-keyed-accumulation/fixed.tape";

test("both calls of one reply are made, and both streams are read for calls", async () => {
  await withTape(TAPE, async () => {
    const said = await converse(
      DESIGNER,
      "How is the weather on my trip, and where can I eat?",
      "Then just tell me what is planned.",
    );
    expect(said).toContain("designer: It will be sunny");
    expect(said).toContain("designer: Alfama, Sintra");
  });
});
