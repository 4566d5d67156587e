// What chromium.ts runs in each page before the page's own scripts: the types of this repository know no browsers.
const all = (selector) => [...document.querySelectorAll(selector)];

globalThis.visitor = {
  /** The directives of the policy that something on the page has violated. */
  violations: [],

  styleOf(selector, names) {
    const style = getComputedStyle(document.querySelector(selector));
    return names.map((name) => style.getPropertyValue(name));
  },

  /** Each different contrast (WCAG 2.2, 1.4.3) of a text with what is behind it. */
  contrasts() {
    const canvas = document.createElement('div');
    canvas.style.backgroundColor = 'Canvas';
    document.body.append(canvas);
    const lowest = parts(getComputedStyle(canvas).backgroundColor);
    canvas.remove();
    const behind = (element) =>
      element ? over(parts(getComputedStyle(element).backgroundColor), behind(element.parentElement)) : lowest;
    const texts = all('body *').filter((element) => [...element.childNodes].some(({ data }) => data?.trim()));
    return [
      ...new Set(
        texts.map((element) => {
          const back = behind(element);
          const [dark, light] = [over(parts(getComputedStyle(element).color), back), back]
            .map(luminance)
            .sort((a, b) => a - b);
          return (light + 0.05) / (dark + 0.05);
        }),
      ),
    ];
  },

  headings: () =>
    all('h1, h2, h3, h4, h5, h6').map((heading) => ({
      id: heading.id,
      level: Number(heading.tagName.slice(1)),
      text: heading.innerText,
      visible: heading.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && heading.clientHeight > 0,
    })),

  links: () => all('a').map((link) => ({ href: link.getAttribute('href'), text: link.innerText.trim() })),

  /** Ids of all elements, with repetitions. */
  ids: () => all('[id]').map(({ id }) => id),

  /** Tables that have no row of header cells, or a row with more or fewer cells than that. */
  tablesWithoutHeads: () =>
    all('table').filter(({ rows }) => {
      const [head, ...others] = rows;
      const heads = [...head.cells].filter((cell) => cell.tagName === 'TH' && cell.innerText.trim() !== '');
      return heads.length === 0 || others.some(({ cells }) => cells.length !== heads.length);
    }).length,

  isInView(id) {
    const { top, bottom } = document.getElementById(id).getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  },

  focused: () => ({
    href: document.activeElement.getAttribute('href'),
    outline: getComputedStyle(document.activeElement).outlineStyle,
  }),

  /** Does what somebody would do who could write into the page. @returns what has run or was loaded */
  async attack(elsewhere) {
    const done = (globalThis.done = []);
    const append = (name, members) => {
      const element = Object.assign(document.createElement(name), members);
      document.body.append(element);
      return element;
    };
    append('script', { textContent: "done.push('script')" });
    append('div', { innerHTML: `<button onclick="done.push('handler')" style="z-index: 7">x</button>` });
    const button = document.querySelector('button');
    button.click();
    if (getComputedStyle(button).zIndex === '7') done.push('style attribute');
    append('style', { textContent: 'button { order: 7 }' });
    if (getComputedStyle(button).order === '7') done.push('style');
    const loaded = (name, members) =>
      new Promise((resolve) => {
        append(name, { ...members, onload: () => resolve(done.push(`${name} from elsewhere`)), onerror: resolve });
      });
    const fetched = (url, from) =>
      fetch(url).then(
        () => done.push(`data from ${from}`),
        () => undefined,
      );
    await Promise.all([
      loaded('img', { src: `${elsewhere}/image.svg` }),
      loaded('script', { src: `${elsewhere}/script.js` }),
      loaded('link', { rel: 'stylesheet', href: `${elsewhere}/style.css` }),
      fetched(`${elsewhere}/data`, 'elsewhere'),
      fetched('/openapi.json', 'the same server'),
    ]);
    return done;
  },
};

document.addEventListener('securitypolicyviolation', ({ effectiveDirective }) =>
  visitor.violations.push(effectiveDirective),
);

/** Red, green, blue and opacity of a computed color. */
function parts(color) {
  const [red, green, blue, opacity = 1] = color.match(/[\d.]+/g).map(Number);
  return [red, green, blue, opacity];
}

const over = ([red, green, blue, opacity], back) =>
  [red, green, blue].map((value, index) => value * opacity + back[index] * (1 - opacity));

function luminance(color) {
  const [red, green, blue] = color
    .map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
