import { Text } from '@mantine/core';
import { memo } from 'react';
import type { Step } from '../../data/chat/turn';
import { CallCard, type KnownTools } from './CallCard';
import { Prose } from './Prose';

interface StepProps {
  step: Step;
  tools: KnownTools;
  isReact: boolean;
  /** Whether more of it may come. */
  isOpen: boolean;
}

/** One step of a turn. Thoughts and discarded text are folded. */
export const StepView = memo(function StepView({ step, tools, isReact, isOpen }: StepProps) {
  switch (step.kind) {
    case 'text':
      return <Prose text={step.text} />;
    case 'thinking':
      if (step.thought) {
        return (
          <div className="thought">
            <span className="label">Thought</span> {step.text}
          </div>
        );
      }
      return (
        <details className="thinking">
          <summary>
            {isOpen ? 'Thinking…' : 'Thought'} <span className="call-preview">{step.text.slice(0, 120)}</span>
          </summary>
          <div className="plain">{step.text}</div>
        </details>
      );
    case 'call':
      return <CallCard call={step} tools={tools} isReact={isReact} />;
    case 'observation':
      return (
        <div className="thought" data-error={step.isError || undefined}>
          <span className="label">Observation</span> {step.text}
        </div>
      );
    case 'void':
      return <VoidSteps step={step} tools={tools} />;
    case 'notice':
      return (
        <Text size="sm" c="dimmed">
          {step.text}
        </Text>
      );
  }
});

function VoidSteps({ step, tools }: { step: Extract<Step, { kind: 'void' }>; tools: KnownTools }) {
  if (step.steps.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        {step.reason}
      </Text>
    );
  }
  return (
    <details className="void">
      <summary>{step.reason}. What was said before is discarded.</summary>
      <div className="void-body">
        {step.steps.map((each) =>
          each.kind === 'text' ? (
            <del key={each.key}>{each.text}</del>
          ) : (
            <StepView key={each.key} step={each} tools={tools} isReact={false} isOpen={false} />
          ),
        )}
      </div>
    </details>
  );
}
