/** A project's context and the server that answers from it. */
export { ProjectContext } from './contextAnswer.ts';
export { refuseMissing } from './contextFolders.ts';
export { contextModel } from './contextModel.ts';
export { serveContext } from './contextServer.ts';
export { RpcError, type RpcPeer, serveLines, unknownMethod } from './jsonRpcLines.ts';
