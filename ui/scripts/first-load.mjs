// Adds up what a browser fetches before the first screen shows, gzipped, and fails above the bound.
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const BOUND = 220_000;
const dist = new URL('../dist/', import.meta.url);
const manifest = JSON.parse(readFileSync(new URL('.vite/manifest.json', dist), 'utf8'));
const files = new Set(['index.html']);
const visited = new Set();

function collect(key) {
  if (visited.has(key)) return;
  visited.add(key);
  const chunk = manifest[key];
  files.add(chunk.file);
  for (const css of chunk.css ?? []) files.add(css);
  for (const imported of chunk.imports ?? []) collect(imported);
}

for (const [key, chunk] of Object.entries(manifest)) if (chunk.isEntry) collect(key);
let total = 0;
for (const file of files) {
  const size = gzipSync(readFileSync(new URL(file, dist)), { level: 9 }).length;
  total += size;
  console.log(`${String(size).padStart(8)}  ${file}`);
}
console.log(`${String(total).padStart(8)}  first load, gzip (at most ${BOUND})`);
if (total > BOUND) process.exit(1);
