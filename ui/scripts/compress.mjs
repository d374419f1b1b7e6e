// Puts a brotli and a gzip version beside each file of the build: the board sends the one that the browser takes.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const dist = new URL('../dist/', import.meta.url);
for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
  // The page itself is sent with a nonce, and compressed by nobody.
  if (!entry.isFile() || !/\.(js|css|svg)$/.test(entry.name)) continue;
  const path = `${entry.parentPath}/${entry.name}`;
  const content = readFileSync(path);
  writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
  writeFileSync(`${path}.br`, brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
}
// The directory itself is part of the repository, so that a build of the program without it is possible.
writeFileSync(new URL('.gitignore', dist), '*\n!.gitignore\n');
