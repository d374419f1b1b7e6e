import { screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import type { CallStep } from '../../data/chat/turn';
import { show } from '../../test/render';
import { CallCard } from './CallCard';

const known = new Map([['demo__wait', { canonical: 'demo.wait', server: 'demo', tool: 'wait' }]]);
const call = (more: Partial<CallStep>): CallStep => ({
  kind: 'call',
  key: 'k',
  name: 'demo__wait',
  written: '',
  state: 'running',
  ...more,
});

test('a running call shows how far it is', () => {
  const progress = { progress: 1.23456, total: 4, message: 'halfway' };
  show(<CallCard call={call({ progress })} tools={known} isReact={false} />);
  expect(screen.getByRole('progressbar')).toHaveAttribute('aria-valuenow', '31');
  expect(screen.getByText(/1\.23 \/ 4 \(31 %\) · halfway/)).toBeInTheDocument();
});

test('what a server sent is text, and leads to the tool', () => {
  const content = [{ type: 'text' as const, text: '<b id="x">3</b>' }];
  const { container } = show(
    <CallCard
      call={call({ state: 'done', arguments: { ms: 1 }, content, latencyMs: 12 })}
      tools={known}
      isReact={false}
    />,
  );
  expect(container.querySelector('#x')).toBeNull();
  expect(screen.getAllByText('<b id="x">3</b>').length).toBeGreaterThan(0);
  expect(screen.getByRole('link', { name: 'Open demo.wait', hidden: true })).toHaveAttribute(
    'href',
    '/tools/demo.wait',
  );
});

test('a call without a result says that it may have taken effect', () => {
  show(<CallCard call={call({ state: 'abandoned' })} tools={new Map()} isReact={false} />);
  expect(screen.getByText(/may have taken effect/)).toBeInTheDocument();
  expect(screen.getByText('demo__wait')).toBeInTheDocument();
});
