/** Lets TypeScript accept the style sheets that the bundler collects. */
declare module '*.css';
