// Builds what greenroom has in it: node build.mjs [DIRECTORY]
import { build } from "esbuild";
import { copyFile, readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";

const out = process.argv[2] ?? "../crates/greenroom-cli/src/admin/page/assets";

await build({
  entryPoints: { app: "src/main.tsx", playground: "src/playground/main.tsx" },
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome105", "firefox110", "safari16"],
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "utf8",
  legalComments: "eof",
  logLevel: "warning",
  outdir: out,
});
await copyFile("src/index.html", `${out}/index.html`);
await copyFile("src/playground/playground.html", `${out}/playground.html`);
await copyFile("src/favicon.svg", `${out}/favicon.svg`);

let sum = 0;
for (const name of ["index.html", "app.js", "app.css", "favicon.svg", "playground.html", "playground.js", "playground.css"]) {
  const bytes = await readFile(`${out}/${name}`);
  const zipped = gzipSync(bytes, { level: 9 }).length;
  sum += zipped;
  console.log(`${name.padEnd(15)} ${String(bytes.length).padStart(7)} bytes ${String(zipped).padStart(7)} zipped`);
}
console.log(`${"all".padEnd(15)} ${" ".repeat(13)} ${String(sum).padStart(7)} zipped`);
