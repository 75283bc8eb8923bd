/** The sandbox for commands. */

export const importCommandBox = () => import('./box/commandBox.ts');
export const importFindBox = () => import('./box/findBox.ts');
