"""The report in a browser: it loads nothing, fits on a phone, and follows the theme."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from helpers import plain_classifier, plain_regressor

from hybridmix.reporting import report
from hybridmix.reporting.sections import SECTIONS

pytest.importorskip("selenium", reason="the browser is driven by selenium")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="needs chromium and chromedriver on the path",
)
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Colours with an alpha of less than one are blended with what lies behind them.
CONTRASTS = """
const parse = (text) => {
  const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
  return [r, g, b, a];
};
const luminance = (colour) => {
  const [r, g, b] = colour.map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (element) => {
  if (!element) return [255, 255, 255];
  const [r, g, b, a] = parse(getComputedStyle(element).backgroundColor);
  const under = a < 1 ? behind(element.parentElement) : [0, 0, 0];
  return [r, g, b].map((v, k) => a * v + (1 - a) * under[k]);
};
const written = "p, td, th, caption span, figcaption, dt, dd, a, li";
return [...document.querySelectorAll(written)]
  .map((element) => {
    const text = parse(getComputedStyle(element).color).slice(0, 3);
    const [dark, light] = [luminance(text), luminance(behind(element))]
      .sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  });
"""


@pytest.fixture(scope="module", params=["classes", "numbers"])
def page(request, tmp_path_factory):
    """A report on a mixed table with long names, written to a file."""
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=90)
    X = pd.DataFrame(
        {
            "a_rather_long_name_that_has_no_space_to_break_it_at": label
            + rng.normal(size=90),
            "colour": rng.choice(["red", "green", "blue"], 90),
            **{f"measurement {k}": rng.normal(size=90) for k in range(6)},
        }
    )
    X = X.mask(rng.random(X.shape) < 0.1)
    if request.param == "classes":
        y = np.array(["setosa", "versicolor", "virginica"])[label]
        model = plain_classifier(n_components=2, n_steps=3, random_state=0).fit(X, y)
    else:
        y = 1000.0 * label + 100.0 * rng.normal(size=90)
        model = plain_regressor(covariance_prior=1.0).fit(X, y)
    path = tmp_path_factory.mktemp(request.param) / "report.html"
    written = report(model, X, y, title="In a browser", cv=2)
    written.save(path)
    path.with_name("notebook.html").write_text(
        f"<!doctype html><h1>Notebook</h1>{written._repr_html_()}", "utf-8"
    )
    return path.as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
    )
    yield driver
    driver.quit()


def show(browser, page, width, theme="light", media=""):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"media": media, "features": features}
    )
    browser.get_log("browser")  # what earlier tests have left
    browser.get(page)


def background(browser):
    return browser.execute_script(
        "return getComputedStyle(document.body).backgroundColor"
    )


def test_loads_nothing_and_says_nothing(browser, page):
    browser.get_log("performance")
    show(browser, page, 1280)
    events = [
        json.loads(entry["message"])["message"]
        for entry in browser.get_log("performance")
    ]
    requests = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert page in requests
    assert {url for url in requests if not url.startswith("data:,")} == {page}
    assert browser.get_log("browser") == []


def test_policy_keeps_the_network_out(browser, page):
    show(browser, page, 1280)
    browser.execute_script(
        "const image = new Image(); image.src = 'https://example.org/x.png';"
        "document.body.append(image);"
    )
    messages = [entry["message"] for entry in browser.get_log("browser")]
    assert any("Content Security Policy" in message for message in messages)


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_sections_are_visible_and_nothing_sticks_out(browser, page, width):
    show(browser, page, width)
    target = "numbers" if "numbers" in page else "classes"
    for section in SECTIONS:
        if section.targets is not None and target not in section.targets:
            assert not browser.find_elements("id", section.anchor)
            continue
        found = browser.find_element("id", section.anchor)
        assert found.is_displayed()
        assert found.size["height"] > 40
        assert found.find_element("tag name", "h2").text == section.title
        assert browser.find_elements("css selector", f"nav a[href='#{section.anchor}']")
    widths = browser.execute_script(
        "return [document.documentElement.scrollWidth, document.body.scrollWidth]"
    )
    assert max(widths) <= width
    smallest = browser.execute_script(
        "return Math.min(...[...document.querySelectorAll('.chart text')].map("
        "(text) => text.getBoundingClientRect().height))"
    )
    assert smallest >= 10


def test_large_tables_stay_short(browser, tmp_path):
    """A page on 57 columns and 26 classes is no taller than 6,000 pixels."""
    rng = np.random.default_rng(0)
    names = [f"a name of some length {k}" if k % 3 else f"m{k}" for k in range(57)]
    y = np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))[np.arange(260) % 26]
    centres = rng.normal(size=(26, 57))
    X = pd.DataFrame(centres[np.arange(260) % 26] + rng.normal(size=(260, 57)))
    X = X.set_axis(names, axis=1).mask(rng.random((260, 57)) < 0.1)
    model = plain_classifier("likelihood", covariance_type="diag", random_state=0)
    path = tmp_path / "large.html"
    report(model.fit(X, y), X, y, cv=2).save(path)
    show(browser, path.as_uri(), 1280)
    height = "return document.documentElement.scrollHeight"
    assert browser.execute_script(height) <= 6000
    # The heat map of all classes scrolls in a frame of its own, both ways.
    frame = browser.find_element("css selector", ".heat")
    assert frame.size["height"] <= 400
    assert browser.execute_script(
        "return arguments[0].scrollHeight > arguments[0].clientHeight", frame
    )
    folded = browser.find_element("css selector", "#training summary")
    content = browser.find_element("css selector", "#training details > *:last-child")
    assert not content.is_displayed()
    # Titles of folded sections open them, by the keyboard as well.
    folded.send_keys(" ")
    assert content.is_displayed()
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read(browser, page, theme):
    show(browser, page, 390, theme)
    contrasts = browser.execute_script(CONTRASTS)
    assert len(contrasts) > 300
    assert min(contrasts) >= 4.5


def test_themes_and_print(browser, page):
    colours = {}
    for theme in ("light", "dark"):
        show(browser, page, 1280, theme)
        colours[theme] = background(browser)
    assert colours["light"] != colours["dark"]
    show(browser, page, 720, "dark", media="print")
    assert background(browser) == "rgb(255, 255, 255)"
    assert not browser.find_element("tag name", "nav").is_displayed()


def test_links_work_in_a_notebook(browser, page):
    show(browser, page.replace("report.html", "notebook.html"), 1280)
    browser.switch_to.frame(browser.find_element("tag name", "iframe"))
    browser.find_element("css selector", "nav a[href='#columns']").click()
    from selenium.webdriver.support.wait import WebDriverWait

    top = "return document.querySelector('#columns').getBoundingClientRect().top"
    # Scrolling is smooth and takes a moment.
    WebDriverWait(browser, 10).until(lambda page: abs(page.execute_script(top)) < 50)
    browser.switch_to.default_content()
    assert browser.get_log("browser") == []
