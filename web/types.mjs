// Writes the types of the JSON documents from their published schemas; with --check, compares.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { compile } from "json-schema-to-typescript";

const here = dirname(fileURLToPath(import.meta.url));
const schemas = join(here, "../docs");
const out = join(here, "src/schema");
const check = process.argv.includes("--check");
const stale = [];

for (const file of (await readdir(schemas))
  .filter((name) => name.endsWith(".schema.json"))
  .sort()) {
  const name = file.replace(".schema.json", "");
  const schema = JSON.parse(await readFile(join(schemas, file), "utf8"));
  delete schema.$id; // nothing is fetched
  schema.title = `${name[0].toUpperCase()}${name.slice(1)}Document`;
  const text = await compile(schema, schema.title, {
    bannerComment: `// From docs/${file}: npm run types --prefix web`,
    cwd: schemas,
    format: false,
    unreachableDefinitions: true,
  });
  const path = join(out, `${name}.d.ts`);
  if (check) {
    const there = await readFile(path, "utf8").catch(() => "");
    if (there !== text) stale.push(`${name}.d.ts`);
  } else {
    await writeFile(path, text);
  }
}
if (stale.length) {
  console.error(`not made from docs: ${stale.join(", ")}; run: npm run types --prefix web`);
  process.exit(1);
}
