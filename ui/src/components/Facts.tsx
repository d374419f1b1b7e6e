import { Table } from '@mantine/core';
import type { ReactNode } from 'react';

export type Fact = [label: string, value: ReactNode];

/** Facts about one thing, a line for each. */
export function Facts({ facts, width = 150 }: { facts: Fact[]; width?: number }) {
  return (
    <Table fz="sm" variant="vertical" layout="fixed">
      <Table.Tbody>
        {facts.map(([label, value]) => (
          <Table.Tr key={label}>
            <Table.Th w={width} scope="row">
              {label}
            </Table.Th>
            <Table.Td style={{ overflowWrap: 'anywhere' }}>{value}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
