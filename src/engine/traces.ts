/** Exports traces and metrics of runs by OpenTelemetry. */
export { hasTraces } from './traces/traceSettings.ts';

export const importTraced = () => import('./traces/traced.ts');
