import { Empty } from '../../components/states';
import { Page } from '../../components/Page';

export function CallsScreen() {
  return (
    <Page title="Calls">
      <Empty title="This screen is being built">The command line shows the same until it is there.</Empty>
    </Page>
  );
}
