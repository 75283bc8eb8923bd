/** Finds, fetches and installs packs from their sources. */
export { type CatalogueEntry, lookAtCatalogue } from './sources/catalogue.ts';
export { searchClawHub } from './sources/clawhub.ts';
export { type FetchOptions, reachFor, resolveSource } from './sources/fetchSource.ts';
export { programPlaces } from './sources/gitSource.ts';
export {
  type LookOptions,
  lookAtSource,
  type Offer,
  offerAgain,
  placeOffer,
  setPinned,
} from './sources/install.ts';
export { dangersIn, type ScannedSource } from './sources/look.ts';
export { npmProgram } from './sources/npm.ts';
export {
  parseSource,
  type Source,
  type SourceProgress,
  sourceForms,
  UnclearSource,
} from './sources/sourceText.ts';

export type { Trial, TrialChange } from './sources/trial.ts';

export const importTrial = () => import('./sources/trial.ts');
export const importLook = () => import('./sources/look.ts');
