// Writes the types of the JSON documents from their published schemas, and a table of the findings;
// with --check, compares.
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
  await put(`${name}.d.ts`, text);
}
await put("codes.ts", codes(await readFile(join(schemas, "findings.md"), "utf8")));

async function put(name, text) {
  const path = join(out, name);
  if (!check) return writeFile(path, text);
  const there = await readFile(path, "utf8").catch(() => "");
  if (there !== text) stale.push(name);
}

/** What docs/findings.md says of each code. */
function codes(page) {
  const rows = [];
  let group = "";
  for (const line of page.split("\n")) {
    if (line.startsWith("## ")) group = line.slice(3);
    const [, code, name, severity, says] =
      line.match(/^\| \[(\w+)\]\(.*?\) \| (.*?) \| (.*?) \| (.*) \|$/) ?? [];
    if (code) rows.push(`  ${code}: ${JSON.stringify({ name, severity, group, says })},`);
  }
  return [
    "// From docs/findings.md: npm run types --prefix web",
    "export interface About {",
    "  name: string;",
    "  severity: string;",
    "  group: string;",
    "  says: string;",
    "}",
    "export const CODES: Record<string, About> = {",
    ...rows,
    "};",
    "",
  ].join("\n");
}
if (stale.length) {
  console.error(`not made from docs: ${stale.join(", ")}; run: npm run types --prefix web`);
  process.exit(1);
}
