import { Button, Group, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { ErrorPanel } from '../../components/states';
import { Written } from '../../components/Written';
import { useRole } from '../../data/me';
import { deleteToolset, useToolset } from '../../data/toolsets/entry';

interface ToolsetActionsProps {
  name: string;
  onEdit: () => void;
  onCopy: () => void;
}

/** What can be done with a toolset. Only one that has an entry in the file is changed; each can be copied. */
export function ToolsetActions({ name, onEdit, onCopy }: ToolsetActionsProps) {
  const isAdmin = useRole('admin');
  const { data } = useToolset(name);
  const [isAsking, setAsking] = useState(false);
  const remove = useMutation({ mutationFn: () => deleteToolset(name, data?.etag ?? '') });
  if (!isAdmin || data === undefined) return null;
  const { declared } = data;
  const hasEntry = declared != null && data.etag != null;
  return (
    <>
      <Group gap="xs" my={6}>
        {hasEntry && !isAsking && (
          <>
            <Button size="compact-xs" variant="default" onClick={onEdit} aria-label={`Edit ${name}`}>
              Edit
            </Button>
            <Button
              size="compact-xs"
              variant="default"
              onClick={() => setAsking(true)}
              aria-label={`Delete ${name}`}
              color="red"
            >
              Delete
            </Button>
          </>
        )}
        {!isAsking && (
          <Button size="compact-xs" variant="default" onClick={onCopy} aria-label={`Copy ${name} to a new toolset`}>
            Copy to a new one
          </Button>
        )}
        {!hasEntry && (
          <Text size="xs" c="dimmed">
            It is made by its server and has no entry of its own.
          </Text>
        )}
      </Group>
      {isAsking && (
        <>
          <Written before={{ name, ...declared }} after={undefined} place="toolsets" />
          <Group gap="xs" my={6}>
            <Button size="compact-sm" color="red" loading={remove.isPending} onClick={() => remove.mutate()}>
              Delete {name} for everybody
            </Button>
            <Button size="compact-sm" variant="default" onClick={() => setAsking(false)}>
              Keep it
            </Button>
          </Group>
          {remove.isError && <ErrorPanel error={remove.error} />}
        </>
      )}
    </>
  );
}
