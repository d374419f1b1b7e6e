import { Empty } from '../../components/states';
import { Page } from '../../components/Page';

export function ToolPage() {
  return (
    <Page title="Tools">
      <Empty title="This screen is being built">The command line shows the same until it is there.</Empty>
    </Page>
  );
}
