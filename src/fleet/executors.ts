/** Has work done by the workers of a database. */
export { databaseAddress, databaseVariable } from './databaseAddress.ts';
export { dbosInstall, hasDbos, loadDbos } from './dbos.ts';
export { modelElsewhere } from './evalOrder.ts';
export { FleetDatabase, queueOf } from './fleetDatabase.ts';
export { remoteSlots } from './remoteSlots.ts';
export { answerEither } from './sealed.ts';

export const importDatabaseAddress = () => import('./databaseAddress.ts');
export const importDbos = () => import('./dbos.ts');
export const importEvalOrder = () => import('./evalOrder.ts');
export const importFleetDatabase = () => import('./fleetDatabase.ts');
export const importPlanWorkers = () => import('./planWorkers.ts');
export const importRemoteSlots = () => import('./remoteSlots.ts');
