/** The result of a call, by the kind of its content. Text of servers is never markup. */
import { Alert, Box, Button, Group, SegmentedControl, Stack, Table, Text } from '@mantine/core';
import { useState } from 'react';
import { CopyButton } from './CopyButton';
import { bytes } from './time';

type Block = {
  type?: string;
  text?: string;
  data?: string;
  mimeType?: string;
  resource?: { uri?: string; text?: string; blob?: string; mimeType?: string };
  uri?: string;
  name?: string;
};

const CUT = 20_000;
const ROWS = 200;

function parsed(text: string): unknown {
  const start = text.trimStart()[0];
  if (start !== '{' && start !== '[') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A long text is cut, with its size and a button for the rest. */
export function LongText({ text, label = 'Text' }: { text: string; label?: string }) {
  const [all, setAll] = useState(false);
  const isCut = text.length > CUT && !all;
  return (
    <>
      <pre className="output" tabIndex={0} aria-label={label}>
        {isCut ? text.slice(0, CUT) : text}
      </pre>
      {isCut && (
        <Group gap="xs">
          <Text size="xs" c="dimmed">
            {bytes(CUT)} of {bytes(text.length)}
          </Text>
          <Button size="compact-xs" variant="default" onClick={() => setAll(true)}>
            Show all
          </Button>
        </Group>
      )}
    </>
  );
}

function isRows(value: unknown): value is Record<string, unknown>[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every(
      (row) => typeof row === 'object' && row !== null && !Array.isArray(row) && Object.keys(row).length <= 12,
    )
  );
}

const cell = (value: unknown) => (typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value));

function Rows({ rows }: { rows: Record<string, unknown>[] }) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return (
    <div className="wide-table">
      <Table striped fz="xs" stickyHeader>
        <Table.Thead>
          <Table.Tr>
            {columns.map((column) => (
              <Table.Th key={column}>{column}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.slice(0, ROWS).map((row, index) => (
            <Table.Tr key={index}>
              {columns.map((column) => (
                <Table.Td key={column}>{cell(row[column])}</Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {rows.length > ROWS && (
        <Text size="xs" c="dimmed">
          {ROWS} of {rows.length} rows; the raw view has all.
        </Text>
      )}
    </div>
  );
}

/** JSON as a tree that folds below the second level. */
function Tree({ name, value, depth = 0 }: { name?: string; value: unknown; depth?: number }) {
  const label = name === undefined ? null : <span className="json-key">{name}: </span>;
  if (typeof value !== 'object' || value === null) {
    return (
      <div className="json-leaf">
        {label}
        {JSON.stringify(value)}
      </div>
    );
  }
  const entries = Object.entries(value);
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  return (
    <details open={depth < 2} className="json-node">
      <summary>
        {label}
        {size}
      </summary>
      {entries.slice(0, 500).map(([key, each]) => (
        <Tree key={key} name={key} value={each} depth={depth + 1} />
      ))}
      {entries.length > 500 && <div className="json-leaf">… {entries.length - 500} more, in the raw view</div>}
    </details>
  );
}

export function Structured({ value }: { value: unknown }) {
  if (isRows(value)) return <Rows rows={value} />;
  if (typeof value === 'object' && value !== null) {
    const lists = Object.values(value);
    if (lists.length === 1 && isRows(lists[0])) return <Rows rows={lists[0]} />;
  }
  return (
    <Box className="json-tree">
      <Tree value={value} />
    </Box>
  );
}

function Content({ block }: { block: Block }) {
  const media = block.data ?? block.resource?.blob;
  const kind = block.mimeType ?? block.resource?.mimeType ?? (block.type === 'image' ? 'image/png' : '');
  const source = `data:${kind};base64,${media ?? ''}`;
  if (media !== undefined && kind.startsWith('image/')) {
    return <img className="result-image" src={source} alt="Result of the tool" />;
  }
  if (media !== undefined && kind.startsWith('audio/')) {
    return (
      <Stack gap={4}>
        <audio controls src={source} aria-label="Result of the tool" />
        <Text size="xs" c="dimmed">
          {kind}, {bytes(Math.floor((media.length * 3) / 4))}
        </Text>
      </Stack>
    );
  }
  const text = block.text ?? block.resource?.text;
  if (text !== undefined) {
    const value = parsed(text);
    return (
      <Box pos="relative">
        <Box pos="absolute" right={0} top={0}>
          <CopyButton value={text} name="Copy the text" />
        </Box>
        <Box pr={34}>{value === undefined ? <LongText text={text} /> : <Structured value={value} />}</Box>
      </Box>
    );
  }
  return (
    <Text size="sm">
      {block.type}: {block.name ?? block.uri ?? block.resource?.uri ?? ''}
    </Text>
  );
}

/** An MCP tool result: its blocks, its structured content and the whole as JSON. */
export function Result({ result }: { result: Record<string, unknown> }) {
  const content = Array.isArray(result.content) ? (result.content as Block[]) : [];
  const structured = result.structuredContent;
  const [view, setView] = useState('content');
  const views = [
    { value: 'content', label: 'Content' },
    ...(structured === undefined ? [] : [{ value: 'structured', label: 'Structured' }]),
    { value: 'raw', label: 'Raw' },
  ];
  const raw = JSON.stringify(result, null, 2);
  const shown = views.some(({ value }) => value === view) ? view : 'content';
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <SegmentedControl size="xs" data={views} value={shown} onChange={setView} aria-label="View of the result" />
        <Group gap="xs">
          <Text size="xs" c="dimmed">
            {bytes(new Blob([raw]).size)}
          </Text>
          <CopyButton value={raw} name="Copy the result as JSON" />
        </Group>
      </Group>
      {result.isError === true && (
        <Alert color="red" variant="light" title="The tool reports an error" role="alert" py="xs" />
      )}
      {shown === 'raw' && <LongText text={raw} />}
      {shown === 'structured' && <Structured value={structured} />}
      {shown === 'content' &&
        (content.length === 0 ? (
          <Text size="sm">The result has no content.</Text>
        ) : (
          content.map((block, index) => <Content key={index} block={block} />)
        ))}
    </Stack>
  );
}
