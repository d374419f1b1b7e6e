import { Group, Modal, ScrollArea, Text, TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { type KeyboardEvent, useDeferredValue, useEffect, useMemo, useRef, useState } from 'react';
import { useNavigate } from 'react-router';
import { useRole } from '../data/me';
import { useServers, useSessions, useTools } from '../data/queries';
import { type Entry, matching, recentFirst, remember } from './palette-entries';
import { screens } from './screens';

/** What can be done from anywhere: its name, its address, and what it is about. */
const ACTIONS = [
  ['Add a server', '/servers?add', 'an MCP server with an address', 'admin'],
  ['Compose a toolset', '/toolsets?compose', 'a group of tools', 'client'],
  ['New session', '/sessions?new', 'a view of the tools for a client', 'client'],
  ['New chat', '/chat', 'a conversation with a model', 'client'],
  ['Make a key', '/keys?new', 'an API key', 'admin'],
] as const;

/** Everything that Ctrl+K finds. */
function useEntries(): Entry[] {
  const servers = useServers().data?.servers;
  const tools = useTools().data?.tools;
  const sessions = useSessions().data?.sessions;
  const isAdmin = useRole('admin');
  return useMemo(
    () => [
      ...screens.map(({ path, label, about }) => ({ to: `/${path}`, label, kind: 'Screen', about })),
      ...ACTIONS.filter(([, , , role]) => role === 'client' || isAdmin).map(([label, to, about]) => ({
        to,
        label,
        kind: 'Action',
        about,
      })),
      ...(servers ?? []).map(({ name, state }) => ({
        to: `/servers/${encodeURIComponent(name)}`,
        label: name,
        kind: 'Server',
        about: state,
      })),
      ...(sessions ?? []).map(({ id, title, kind }) => ({
        to: `/sessions/${encodeURIComponent(id)}`,
        label: title ?? id,
        kind: 'Session',
        about: kind,
      })),
      ...(tools ?? []).map(({ name, description }) => ({
        to: `/tools/${encodeURIComponent(name)}`,
        label: name,
        kind: 'Tool',
        about: description ?? '',
      })),
    ],
    [servers, tools, sessions, isAdmin],
  );
}

/** The palette: a text field with the entries that match it. Arrow keys choose, Enter goes there. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const entries = useEntries();
  const [text, setText] = useState('');
  const wanted = useDeferredValue(text);
  const { shown, total } = useMemo(
    () => matching(wanted === '' ? recentFirst(entries) : entries, wanted),
    [entries, wanted],
  );
  const [position, setPosition] = useState(0);
  const at = Math.min(position, Math.max(0, shown.length - 1));
  const navigate = useNavigate();
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  }, [at, shown]);

  function go(entry: Entry) {
    remember(entry);
    onClose();
    void navigate(entry.to);
  }
  function onKey(event: KeyboardEvent) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setPosition(Math.max(0, Math.min(shown.length - 1, at + step)));
    } else if (event.key === 'Enter' && shown[at]) {
      event.preventDefault();
      go(shown[at]);
    }
  }

  return (
    <Modal opened onClose={onClose} title="Find" size="lg" padding="sm" closeButtonProps={{ 'aria-label': 'Close' }}>
      <TextInput
        data-autofocus
        aria-label="Find servers, tools, sessions and screens"
        placeholder="Servers, tools, sessions, screens"
        leftSection={<IconSearch size={16} />}
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setPosition(0);
        }}
        onKeyDown={onKey}
        role="combobox"
        aria-expanded
        aria-controls="palette-list"
        aria-activedescendant={shown[at] ? `palette-${at}` : undefined}
      />
      <Text size="xs" c="dimmed" my={6} role="status">
        {total === shown.length ? `${total} found` : `${total} found, the first ${shown.length} shown`}
      </Text>
      <ScrollArea.Autosize mah="55vh">
        <div id="palette-list" role="listbox" aria-label="Found" ref={list}>
          {shown.map((entry, index) => (
            <div
              key={entry.kind + entry.to}
              id={`palette-${index}`}
              role="option"
              aria-selected={index === at}
              className="palette-entry"
              onClick={() => go(entry)}
              onMouseMove={() => setPosition(index)}
            >
              <Group justify="space-between" wrap="nowrap" gap="xs">
                <Text size="sm" fw={500} truncate>
                  {entry.label}
                </Text>
                <Text size="xs" c="dimmed">
                  {entry.kind}
                </Text>
              </Group>
              {entry.about !== '' && (
                <Text size="xs" c="dimmed" truncate>
                  {entry.about}
                </Text>
              )}
            </div>
          ))}
        </div>
      </ScrollArea.Autosize>
    </Modal>
  );
}
