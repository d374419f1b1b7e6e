import { Empty } from '../../components/states';
import { Page } from '../../components/Page';

export function RenderingsScreen() {
  return (
    <Page title="Renderings">
      <Empty title="This screen is being built">The command line shows the same until it is there.</Empty>
    </Page>
  );
}
