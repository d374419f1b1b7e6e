import { expect, test } from 'vitest';
import { clientSetups } from './clients';

test('each of the six clients gets an entry for this board', () => {
  const setups = clientSetups('http://127.0.0.1:8420', false);
  expect(setups.map(({ id }) => id)).toEqual(['claude-code', 'claude-desktop', 'cursor', 'vscode', 'codex', 'gemini']);
  for (const { text, command } of setups) {
    expect(text).toContain('http://127.0.0.1:8420/mcp');
    expect(text).not.toContain('API_KEY');
    expect(command).toContain('--url http://127.0.0.1:8420 connect');
  }
});

test('a key is a variable of the client', () => {
  const text = Object.fromEntries(clientSetups('https://board.example', true).map(({ id, text }) => [id, text]));
  expect(text['claude-code']).toContain('Bearer ${SWITCHBOARD_API_KEY}');
  expect(text.cursor).toContain('Bearer ${env:SWITCHBOARD_API_KEY}');
  expect(text.vscode).toContain('"password": true');
  expect(text.codex).toContain('bearer_token_env_var = "SWITCHBOARD_API_KEY"');
  expect(text.gemini).toContain('Bearer $SWITCHBOARD_API_KEY');
});
