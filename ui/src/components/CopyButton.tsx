import { ActionIcon, Button, CopyButton as MantineCopyButton } from '@mantine/core';
import { IconCheck, IconCopy } from '@tabler/icons-react';

/** Copies a text. With `label` it is a button with words, else an icon whose name is `name`. */
export function CopyButton({ value, label, name = 'Copy' }: { value: string; label?: string; name?: string }) {
  return (
    <MantineCopyButton value={value} timeout={1500}>
      {({ copied, copy }) => {
        const icon = copied ? <IconCheck size={16} /> : <IconCopy size={16} />;
        if (label !== undefined) {
          return (
            <Button size="xs" variant="default" leftSection={icon} onClick={copy}>
              {copied ? 'Copied' : label}
            </Button>
          );
        }
        return (
          <ActionIcon title={name} variant="subtle" color="gray" onClick={copy} aria-label={copied ? 'Copied' : name}>
            {icon}
          </ActionIcon>
        );
      }}
    </MantineCopyButton>
  );
}
