import '@testing-library/jest-dom/vitest';
import { cleanup } from '@testing-library/react';
import { afterEach } from 'vitest';

afterEach(() => {
  cleanup();
  globalThis.sessionStorage?.clear();
  globalThis.localStorage?.clear();
});

// happy-dom has no fonts; text areas that grow ask for them.
if (typeof document !== 'undefined')
  Object.defineProperty(document, 'fonts', { value: new EventTarget(), configurable: true });
