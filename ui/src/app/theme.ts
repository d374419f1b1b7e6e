import { Anchor, createTheme, type CSSVariablesResolver, Modal } from '@mantine/core';

/** Shades 7 and 8 and `autoContrast` keep filled buttons above the contrast of 4.5 in both schemes. */
export const theme = createTheme({
  primaryColor: 'blue',
  primaryShade: { light: 8, dark: 8 },
  autoContrast: true,
  defaultRadius: 'sm',
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace',
  headings: { fontFamily: 'inherit', fontWeight: '650' },
  respectReducedMotion: true,
  components: {
    // A link within a text must not be known by its colour alone.
    Anchor: Anchor.extend({ defaultProps: { underline: 'always' } }),
    // The header of a dialog is not a landmark of the page.
    Modal: Modal.extend({
      defaultProps: { attributes: { header: { role: 'none' } }, closeButtonProps: { 'aria-label': 'Close' } },
    }),
  },
});

/** Error and dimmed texts are too pale by default. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-error': '#b02525',
    '--mantine-color-dimmed': '#596067',
    '--mantine-color-placeholder': '#666d75',
    '--mantine-color-anchor': '#1864ab',
  },
  dark: {
    '--mantine-color-error': '#ff9b9b',
    '--mantine-color-dimmed': '#a6abb0',
    '--mantine-color-placeholder': '#9aa0a6',
    '--mantine-color-anchor': '#74c0fc',
  },
});
