import type { BuildOptions } from 'esbuild';

export const webviewBuild: BuildOptions;
export const frameInputs: Set<string>;
