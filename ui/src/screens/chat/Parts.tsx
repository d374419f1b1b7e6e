import { Anchor, Button, Group, Text } from '@mantine/core';
import { useState } from 'react';
import { bytes } from '../../components/time';
import { CopyButton } from '../../components/CopyButton';
import type { Part } from '../../data/chat/turn';

const FIRST = 4_000;

/** A text that is cut when it is long, with its size and a way to see all of it. */
export function LongText({ text, name }: { text: string; name: string }) {
  const [all, setAll] = useState(false);
  const isCut = !all && text.length > FIRST;
  return (
    <div className="part">
      <pre className="output" tabIndex={0} aria-label={name}>
        {isCut ? `${text.slice(0, FIRST)}…` : text}
      </pre>
      <Group gap="xs">
        <CopyButton value={text} name={`Copy ${name.toLowerCase()}`} />
        {isCut && (
          <Button size="compact-xs" variant="default" onClick={() => setAll(true)}>
            Show all of {bytes(text.length)}
          </Button>
        )}
      </Group>
    </div>
  );
}

function PartView({ part }: { part: Part }) {
  if (part.type === 'text') return <LongText text={part.text} name="Text" />;
  if (part.type === 'image' && 'data' in part) {
    return <img className="part-image" src={`data:${part.media_type};base64,${part.data}`} alt="Result of the tool" />;
  }
  if ('url' in part) {
    return (
      <Anchor href={part.url} target="_blank" rel="noreferrer noopener" size="sm">
        {part.type === 'image' ? 'Image' : 'File'} at {part.url}
      </Anchor>
    );
  }
  const name = 'name' in part && part.name ? part.name : 'file';
  return (
    <Anchor href={`data:${part.media_type};base64,${part.data}`} download={name} size="sm">
      Save {name} ({part.media_type}, {bytes(Math.floor(part.data.length * 0.75))})
    </Anchor>
  );
}

export function Parts({ parts, structured }: { parts: Part[]; structured?: unknown }) {
  const hasStructured = structured !== undefined && structured !== null;
  return (
    <>
      {parts.map((part, index) => (
        <PartView key={index} part={part} />
      ))}
      {parts.length === 0 && !hasStructured && (
        <Text size="sm" c="dimmed">
          The result is empty.
        </Text>
      )}
      {hasStructured && (
        <>
          <Text size="xs" c="dimmed">
            Structured content
          </Text>
          <LongText text={JSON.stringify(structured, null, 2)} name="Structured content" />
        </>
      )}
    </>
  );
}
