/** Lets TypeScript accept the style sheets that the bundler gathers. */
declare module '*.css';
