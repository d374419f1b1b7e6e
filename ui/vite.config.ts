import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// An object keeps the `Host` header of the browser. A bare string rewrites it, and the board refuses the request.
const board = { target: process.env.SWITCHBOARD_URL ?? 'http://127.0.0.1:8420' };

export default defineConfig({
  plugins: [react()],
  // The board puts a fresh nonce in the place of this word in index.html.
  html: { cspNonce: 'CSP_NONCE' },
  build: { target: 'baseline-widely-available', manifest: true, assetsInlineLimit: 0, chunkSizeWarningLimit: 600 },
  server: { proxy: { '/api': board, '/readyz': board, '/healthz': board, '/metrics': board, '/mcp': board } },
  test: {
    environment: 'happy-dom',
    environmentOptions: { happyDOM: { url: 'http://localhost/' } },
    setupFiles: ['./src/test/setup.ts'],
  },
});
