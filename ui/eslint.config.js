import js from '@eslint/js';
import prettier from 'eslint-config-prettier';
import hooks from 'eslint-plugin-react-hooks';
import globals from 'globals';
import tseslint from 'typescript-eslint';

/** A folder imports only what stands below it: api < data < components < screens < app. */
const below = (folders) => ({
  'no-restricted-imports': ['error', { patterns: folders.map((name) => `**/${name}/**`) }],
});

export default tseslint.config(
  { ignores: ['dist', 'node_modules', 'src/api/schema.d.ts'] },
  js.configs.recommended,
  ...tseslint.configs.recommended,
  hooks.configs.flat['recommended-latest'],
  prettier,
  {
    rules: {
      '@typescript-eslint/no-unused-vars': [
        'error',
        { ignoreRestSiblings: true, argsIgnorePattern: '^_', varsIgnorePattern: '^_' },
      ],
    },
  },
  { languageOptions: { globals: { ...globals.browser } } },
  { files: ['scripts/**', '*.config.*'], languageOptions: { globals: { ...globals.node } } },
  { files: ['src/api/**'], rules: below(['data', 'components', 'screens', 'app']) },
  { files: ['src/data/**'], rules: below(['components', 'screens', 'app']) },
  { files: ['src/components/**'], rules: below(['screens', 'app']) },
  { files: ['src/screens/**'], rules: below(['app']) },
);
