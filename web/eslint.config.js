import js from '@eslint/js'
import tseslint from 'typescript-eslint'

export default tseslint.config(
  { ignores: ['dist/', 'node_modules/', 'public/', 'src/wire/generated/'] },
  js.configs.recommended,
  ...tseslint.configs.recommended,
  {
    rules: {
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      eqeqeq: ['error', 'smart'],
    },
  },
  // Who may import whom: wire nothing of the page, hold nothing of the screens, screens of hold only what it shows.
  {
    files: ['src/wire/**'],
    rules: {
      'no-restricted-imports': ['error', { patterns: ['**/hold/*', '**/ui/*', 'preact', '@preact/*'] }],
      // No clock, no chance and no network: they come in as arguments.
      'no-restricted-globals': [
        'error',
        'Date',
        'performance',
        'WebSocket',
        'indexedDB',
        'crypto',
        'setTimeout',
        'fetch',
      ],
      'no-restricted-properties': ['error', { object: 'Math', property: 'random' }],
    },
  },
  {
    files: ['src/hold/**'],
    rules: { 'no-restricted-imports': ['error', { patterns: ['**/ui/*', 'preact', '@preact/signals'] }] },
  },
)
