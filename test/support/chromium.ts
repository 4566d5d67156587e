import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import puppeteer, { type Browser, type Page } from 'puppeteer-core';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { temporaryFolder } from 'platform/service/testing.ts';

/** Debian's Chromium without windows, or the whole one; undefined where none is installed. */
export const CHROMIUM = ['chromium-headless-shell', 'chromium']
  .flatMap((name) => (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, name)))
  .find((file) => existsSync(file));

const VISITOR = readFileSync(join(import.meta.dirname, 'chromium-visitor.js'), 'utf8');

/** It is closed after the tests of the file, and leaves nothing in the folder of temporary files. */
export async function startChromium(executablePath: string): Promise<Browser> {
  const folder = temporaryFolder();
  const browser = await puppeteer.launch({
    executablePath,
    userDataDir: join(folder.path, 'profile'),
    env: { ...process.env, HOME: folder.path, TMPDIR: folder.path },
    pipe: true,
    // it only opens pages of this product, and CI runs as root, for whom Chromium has no sandbox
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
  closedInTheEnd(async () => {
    await browser.close();
    folder.remove();
  });
  return browser;
}

export interface Visit {
  page: Page;
  /** Verb and URL of everything that the page has asked for. */
  requests: string[];
  /** Warnings and errors on the console, errors of the page, and what Chromium finds wrong with it. */
  complaints: string[];
  /** Calls a function of chromium-visitor.js in the page. */
  ask<T>(name: string, ...args: readonly unknown[]): Promise<T>;
}

export interface Screen {
  width?: number;
  isMobile?: boolean;
  scheme?: 'light' | 'dark';
}

/** A new tab with a screen like this one, in which nothing is open yet. */
export async function visitor(
  browser: Browser,
  { width = 1280, isMobile = false, scheme = 'light' }: Screen = {},
): Promise<Visit> {
  const page = await browser.newPage();
  const requests: string[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => requests.push(`${request.method()} ${request.url()}`));
  page.on('console', (message) => {
    if (['error', 'warn', 'issue'].includes(message.type())) complaints.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(`page: ${String(error)}`));
  const devTools = await page.createCDPSession();
  devTools.on('Log.entryAdded', ({ entry }) => complaints.push(`log: ${entry.text}`));
  devTools.on('Audits.issueAdded', ({ issue }) => complaints.push(`issue: ${issue.code}`));
  await Promise.all([
    devTools.send('Log.enable'),
    devTools.send('Audits.enable'),
    page.setViewport({ width, height: 844, isMobile, hasTouch: isMobile }),
    page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]),
    page.evaluateOnNewDocument(VISITOR),
  ]);
  return {
    page,
    requests,
    complaints,
    ask: <T>(name: string, ...args: readonly unknown[]) =>
      page.evaluate(`visitor.${name}(...${JSON.stringify(args)})`) as Promise<T>,
  };
}
