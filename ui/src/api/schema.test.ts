// @vitest-environment node
import { readFileSync } from 'node:fs';
import openapiTS, { astToString } from 'openapi-typescript';
import { expect, test } from 'vitest';

test('the types are those of the API document; `npm run api` writes them', async () => {
  const document = new URL('../../../docs/openapi.json', import.meta.url);
  const types = astToString(await openapiTS(document));
  const written = readFileSync(new URL('./schema.d.ts', import.meta.url), 'utf8');
  // The generator's own program puts a comment above them.
  expect(written.slice(written.indexOf('export interface paths'))).toBe(
    types.slice(types.indexOf('export interface paths')),
  );
}, 60_000);
