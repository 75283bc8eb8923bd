/** Lets TypeScript accept the style sheets that the bundler collects. */
declare module '*.css';

/** A script that the bundler builds by itself and hands over as a text. */
declare module '*?text' {
  const text: string;
  export = text;
}
