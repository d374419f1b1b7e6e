/** What an MCP client needs to reach this board, for the six clients of `switchboard connect`. Pure. */

export interface ClientSetup {
  id: string;
  title: string;
  /** Where the entry belongs. */
  file: string;
  text: string;
  /** The command that writes the entry. */
  command: string;
}

const json = (value: unknown) => JSON.stringify(value, null, 2);

/** `key` is whether the board wants one. It is a variable of the client, never in clear. */
export function clientSetups(origin: string, key: boolean): ClientSetup[] {
  const url = `${origin}/mcp`;
  const headers = (variable: string) => (key ? { headers: { Authorization: `Bearer ${variable}` } } : {});
  const servers = (entry: object) => json({ mcpServers: { switchboard: entry } });
  const command = (id: string) => `switchboard --url ${origin} connect ${id}${key ? ' --api-key' : ''} --write`;
  const vscode = {
    servers: { switchboard: { type: 'http', url, ...headers('${input:switchboard-api-key}') } },
    ...(key
      ? {
          inputs: [
            { type: 'promptString', id: 'switchboard-api-key', description: 'API key of Switchboard', password: true },
          ],
        }
      : {}),
  };
  const setups: Omit<ClientSetup, 'command'>[] = [
    {
      id: 'claude-code',
      title: 'Claude Code',
      file: '.mcp.json',
      text: servers({ type: 'http', url, ...headers('${SWITCHBOARD_API_KEY}') }),
    },
    {
      id: 'claude-desktop',
      title: 'Claude Desktop',
      file: 'claude_desktop_config.json',
      text: servers({
        command: 'switchboard',
        args: ['--url', url, 'stdio'],
        ...(key ? { env: { SWITCHBOARD_API_KEY: '' } } : {}),
      }),
    },
    {
      id: 'cursor',
      title: 'Cursor',
      file: '~/.cursor/mcp.json',
      text: servers({ url, ...headers('${env:SWITCHBOARD_API_KEY}') }),
    },
    { id: 'vscode', title: 'VS Code', file: '.vscode/mcp.json', text: json(vscode) },
    {
      id: 'codex',
      title: 'Codex',
      file: '~/.codex/config.toml',
      text: `[mcp_servers.switchboard]\nurl = "${url}"${key ? '\nbearer_token_env_var = "SWITCHBOARD_API_KEY"' : ''}`,
    },
    {
      id: 'gemini',
      title: 'Gemini CLI',
      file: '~/.gemini/settings.json',
      text: servers({ httpUrl: url, ...headers('$SWITCHBOARD_API_KEY') }),
    },
  ];
  return setups.map((setup) => ({ ...setup, command: command(setup.id) }));
}
