/** The nonce of this page: style elements that carry it are allowed by the board's policy. */
export const nonce: string | undefined =
  document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce || undefined;
