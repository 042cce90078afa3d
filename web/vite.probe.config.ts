// The protocol half as a program for Node, for tests with a real host: see test/probe.ts.
import { defineConfig } from 'vite'

export default defineConfig({
  publicDir: false,
  build: {
    ssr: 'test/probe.ts',
    target: 'node20',
    outDir: 'dist/probe',
    rollupOptions: { output: { entryFileNames: 'probe.mjs' } },
  },
  // One file that needs nothing around it, wherever it is put.
  ssr: { noExternal: true },
})
