import { Table, Text } from '@mantine/core';
import { TokenBar } from '../../components/TokenBar';
import { Wide } from '../../components/Wide';
import { FORMATS } from '../../data/renderings/queries';
import { isExact, type Rendering } from '../../data/renderings/renderings';

/** What the tools cost each provider in every request. */
export function Summary({ renderings }: { renderings: Rendering[] }) {
  const most = Math.max(1, ...renderings.map(({ tokens }) => tokens.total));
  return (
    <Wide label="Cost for each provider">
      <Table miw={560}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Provider</Table.Th>
            <Table.Th>Tools</Table.Th>
            <Table.Th w="40%">Tokens in every request</Table.Th>
            <Table.Th>Rewritten</Table.Th>
            <Table.Th>Quarantined</Table.Th>
            <Table.Th>Left out</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {renderings.map((rendering) => {
            const rewritten = rendering.explained?.filter(({ rewrites }) => rewrites.length > 0).length ?? 0;
            return (
              <Table.Tr key={rendering.provider}>
                <Table.Td>
                  {rendering.provider}
                  <Text size="xs" c="dimmed">
                    {FORMATS[rendering.provider]}
                  </Text>
                </Table.Td>
                <Table.Td>{rendering.count}</Table.Td>
                <Table.Td>
                  <TokenBar tokens={rendering.tokens.total} most={most} isExact={isExact(rendering)} />
                  <Text size="xs" c="dimmed">
                    {rendering.tokens.basis.note}
                  </Text>
                </Table.Td>
                <Table.Td>{rewritten}</Table.Td>
                <Table.Td>{rendering.quarantined.length}</Table.Td>
                <Table.Td>{rendering.left_out.length}</Table.Td>
              </Table.Tr>
            );
          })}
        </Table.Tbody>
      </Table>
    </Wide>
  );
}
