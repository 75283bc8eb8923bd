/** Models: providers, prices, keys and recordings. */
export { effortLevels } from './core/limits.ts';

export type {
  AttachedFile,
  CompletionRequest,
  Effort,
  Provider,
  StreamEvent,
  TokenCount,
} from './core/ports.ts';
export {
  createProvider,
  type FrontendProvider,
  type FrontendProviders,
  isKnown,
  keyedProviders,
  Models,
  type Pace,
  providerAddress,
  providerNames,
  providerSetups,
  usualModel,
} from './providers/create.ts';
export { checkKey, keepInEnvFile, keyedProvider } from './providers/keys.ts';
export { listModels, type ModelFacts, type ProviderModels } from './providers/modelList.ts';
export {
  hasPrice,
  type NamedModel,
  oldPrices,
  ownPrices,
  pricedModels,
  priceOf,
  unpriced,
} from './providers/models.ts';
export { readToolCall } from './providers/provider.ts';
export { openRecorder, placesOf } from './providers/recording.ts';
export {
  asksClock,
  type RecordedEval,
  type Recording,
  type RunTape,
  readRecording,
  type TapedCall,
} from './providers/recordingFile.ts';
export { digestsOf, type Places, type RequestPart, requestParts } from './providers/requestDigest.ts';

export const importCreate = () => import('./providers/create.ts');
export const importEffort = () => import('./providers/effort.ts');
export const importKeys = () => import('./providers/keys.ts');
export const importModelList = () => import('./providers/modelList.ts');
export const importModels = () => import('./providers/models.ts');
