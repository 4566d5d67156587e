import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser } from 'puppeteer-core';
import { closedInTheEnd, eventually } from 'platform/service/test-end.ts';
import type { OpenApiDocument } from '../../gateway/src/openapi/openapi.ts';
import { CHROMIUM, startChromium, visitor, type Screen, type Visit } from '../support/chromium.ts';
import { sharedStack } from '../support/shared-stack.ts';

interface Heading {
  id: string;
  level: number;
  text: string;
  visible: boolean;
}

let baseUrl: string;
beforeAll(async () => {
  ({ baseUrl } = await sharedStack());
});

it('serves the reference page as HTML to everybody', async () => {
  const response = await fetch(`${baseUrl}/reference`);
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  expect(await response.text()).toMatch(/^<!doctype html>/);
});

// .ci/run installs it; where it is missing, only CI says what was not checked
if (CHROMIUM !== undefined)
  describe('the reference page in Chromium', () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await startChromium(CHROMIUM as string);
    });

    /** The page as somebody with this screen sees it. */
    async function reference(screen?: Screen, hash = ''): Promise<Visit> {
      const visit = await visitor(browser, screen);
      await visit.page.goto(`${baseUrl}/reference${hash}`);
      return visit;
    }

    it('loads by one request, and Chromium has nothing to complain of', async () => {
      const { page, requests, complaints } = await visitor(browser);
      const response = await page.goto(`${baseUrl}/reference`, { waitUntil: 'networkidle0' });
      expect(response?.status()).toBe(200);
      expect(requests).toEqual([`GET ${baseUrl}/reference`]);
      expect(complaints).toEqual([]);
      expect(await page.evaluate('visitor.violations')).toEqual([]);
    });

    it.each(['light', 'dark'] as const)('has its style, and texts that can be read, in %s', async (scheme) => {
      const { ask } = await reference({ scheme }, '#code-forbidden');
      expect(await ask('styleOf', 'body', ['max-width', 'font-family'])).toEqual(['1024px', 'system-ui, sans-serif']);
      expect(await ask('styleOf', 'table', ['border-collapse'])).toEqual(['collapse']);
      const [color] = await ask<string[]>('styleOf', 'body', ['color']);
      expect(color).toBe(scheme === 'light' ? 'rgb(0, 0, 0)' : 'rgb(255, 255, 255)');
      expect(Math.min(...(await ask<number[]>('contrasts')))).toBeGreaterThanOrEqual(4.5);
    });

    it('shows a heading of every operation of /openapi.json', async () => {
      const { ask } = await reference();
      const headings = await ask<Heading[]>('headings');
      const { paths } = (await (await fetch(`${baseUrl}/openapi.json`)).json()) as OpenApiDocument;
      const operations = Object.entries(paths).flatMap(([path, verbs]) =>
        Object.entries(verbs).map(([verb, { operationId }]) => ({
          id: operationId,
          text: `${verb.toUpperCase()} ${path}`,
          level: 3,
          visible: true,
        })),
      );
      expect(operations.length).toBeGreaterThan(10);
      expect(headings).toEqual(expect.arrayContaining(operations));
    });

    it('has only links that lead to an element of the page or to /openapi.json', async () => {
      const { ask } = await reference();
      const places = (await ask<string[]>('ids')).map((id) => `#${id}`);
      expect(new Set(places).size).toBe(places.length);
      const links = await ask<{ href: string; text: string }[]>('links');
      expect(links.filter(({ href }) => href !== '/openapi.json' && !places.includes(href))).toEqual([]);
      expect(links.filter(({ text }) => text === '')).toEqual([]);
    });

    it.each([
      ['an operation in the contents', 'nav a[href="#UpdateMemoryObject"]', 'UpdateMemoryObject'],
      ['a code in a table of replies', 'td a[href="#code-insufficient_credits"]', 'code-insufficient_credits'],
      ['a schema in a table of replies', 'td a[href="#schema-RunAgentReply"]', 'schema-RunAgentReply'],
    ])('scrolls to what is asked for by a click on %s', async (_, link, id) => {
      const { page, ask } = await reference();
      expect(await ask('isInView', id)).toBe(false);
      await page.click(link);
      await page.waitForFunction(`visitor.isInView('${id}')`);
      expect(page.url()).toBe(`${baseUrl}/reference#${id}`);
    });

    it('leads to /openapi.json, which Chromium opens', async () => {
      const { page, complaints } = await reference();
      const [response] = await Promise.all([page.waitForNavigation(), page.click('a[href="/openapi.json"]')]);
      expect([response?.status(), page.url()]).toEqual([200, `${baseUrl}/openapi.json`]);
      expect(await response?.json()).toMatchObject({ openapi: '3.1.0' });
      expect(complaints).toEqual([]);
    });

    it('runs and loads nothing of what is written into it, which a page without its policy does', async () => {
      const elsewhere = await startElsewhere();
      const open = await visitor(browser);
      await open.page.goto(elsewhere.url);
      expect((await open.ask<string[]>('attack', elsewhere.url)).sort()).toEqual([
        ...['data from elsewhere', 'data from the same server', 'handler', 'img from elsewhere'],
        ...['link from elsewhere', 'script', 'script from elsewhere', 'style', 'style attribute'],
      ]);
      const seen = elsewhere.requests.length;
      const { page, ask, complaints } = await reference();
      expect(await ask('attack', elsewhere.url)).toEqual([]);
      expect(elsewhere.requests.slice(seen)).toEqual([]);
      await page.waitForFunction('visitor.violations.length >= 9');
      expect(((await page.evaluate('visitor.violations')) as string[]).sort()).toEqual([
        ...['connect-src', 'connect-src', 'img-src', 'script-src-attr', 'script-src-elem', 'script-src-elem'],
        ...['style-src-attr', 'style-src-elem', 'style-src-elem'],
      ]);
      await eventually(() => complaints.includes('issue: ContentSecurityPolicyIssue'));
    });

    it.each([390, 320])('fits a phone of %d pixels without scrolling sideways', async (width) => {
      const { page } = await reference({ width, isMobile: true });
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    });

    it('has an outline of headings, tables with heads and a language, for those who hear it', async () => {
      const { page, ask } = await reference();
      const levels = (await ask<Heading[]>('headings')).map(({ level }) => level);
      expect([levels[0], levels.filter((level) => level === 1).length]).toEqual([1, 1]);
      expect(levels.filter((level, index) => level > (levels[index - 1] ?? 0) + 1)).toEqual([]);
      expect(await ask('tablesWithoutHeads')).toBe(0);
      expect(await page.evaluate('[document.documentElement.lang, document.title !== ""]')).toEqual(['en', true]);
    });

    it('can be used by the keyboard: Tab goes from link to link visibly, and Enter follows one', async () => {
      const { page, ask } = await reference();
      const [first, second] = await ask<{ href: string }[]>('links');
      for (const link of [first, second]) {
        await page.keyboard.press('Tab');
        expect(await ask('focused')).toEqual({ href: link?.href, outline: 'auto' });
      }
      await page.keyboard.press('Enter');
      await page.waitForFunction(`location.hash === '${second?.href}'`);
    });
  });

/** Another server, which lets everybody read what it has. */
async function startElsewhere(): Promise<{ url: string; requests: string[] }> {
  const requests: string[] = [];
  const contents: Readonly<Record<string, [type: string, text: string]>> = {
    '/image.svg': ['image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'],
    '/script.js': ['text/javascript', ''],
    '/style.css': ['text/css', ''],
  };
  const server: Server = createServer(({ url = '' }, response) => {
    requests.push(url);
    const [type, text] = contents[url] ?? ['text/html', '<!doctype html><title>elsewhere</title>'];
    response.writeHead(200, { 'content-type': type, 'access-control-allow-origin': '*' }).end(text);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closedInTheEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}
