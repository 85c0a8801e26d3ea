"""The explorer in a browser: any width and theme, by keyboard, without a network."""

import re

import numpy as np
import pandas as pd
import pytest
from helpers import plain_classifier, plain_regressor
from sequence_tools import fitted_gestures
from test_report_browser import CONTRASTS, background, browser, pytestmark  # noqa: F401

from hybridmix import MixtureDensity
from hybridmix.explorer import explore

WIDTHS = (360, 390, 1280)


def make_table(n_rows=90):
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=n_rows)
    X = pd.DataFrame(
        {
            "a_rather_long_name_that_has_no_space_to_break_it_at": 2.0 * label
            + rng.normal(size=n_rows),
            "colour": rng.choice(["red", "green", "<b>blue</b>"], n_rows),
            **{f"measurement {k}": rng.normal(size=n_rows) for k in range(5)},
        }
    )
    return X.mask(rng.random(X.shape) < 0.1), np.array(["<i>x</i>", "oak", "elm"])[label]


@pytest.fixture(scope="module", params=["classes", "numbers", "density", "sequences"])
def explorer(request):
    X, y = make_table()
    if request.param == "classes":
        model = plain_classifier(n_components=2, n_steps=3, covariance_prior=1.0)
        opened = explore(model.fit(X, y), X, y)
    elif request.param == "numbers":
        target = 100.0 * X["measurement 1"].fillna(0.0)
        model = plain_regressor(covariance_prior=1.0).fit(X, target)
        opened = explore(model, X, target)
    elif request.param == "density":
        opened = explore(MixtureDensity(2, covariance_type="diag").fit(X))
    else:
        opened = explore(*fitted_gestures())
    opened.kind = request.param
    with opened:
        yield opened


@pytest.fixture(scope="module")
def classes():
    X, y = make_table()
    model = plain_classifier(n_components=2, n_steps=3, covariance_prior=1.0).fit(X, y)
    with explore(model, X, y) as opened:
        yield opened


def until(browser, condition):  # noqa: F811
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(browser, 20, 0.02).until(condition)


def show(browser, url, width, theme="light"):  # noqa: F811
    """Open the page without a network, but for this machine."""
    browser.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {
            "offline": False,
            "latency": 0,
            "downloadThroughput": -1,
            "uploadThroughput": -1,
        },
    )
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"media": "", "features": [{"name": "prefers-color-scheme", "value": theme}]},
    )
    browser.get_log("browser")  # what earlier tests have left
    browser.get_log("performance")
    browser.get(url)
    ready = "return document.documentElement.dataset.ready === 'yes'"
    until(browser, lambda page: page.execute_script(ready))


def text_of(browser, selector):  # noqa: F811
    return browser.find_element("css selector", selector).get_attribute("textContent")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_fits_loads_nothing_else_and_says_nothing(browser, explorer, width, theme):  # noqa: F811
    show(browser, explorer.url, width, theme)
    widths = browser.execute_script(
        "return [document.documentElement.scrollWidth, document.body.scrollWidth]"
    )
    assert max(widths) <= width
    assert browser.get_log("browser") == []
    asked = [
        url
        for entry in browser.get_log("performance")
        if "Network.requestWillBeSent" in entry["message"]
        for url in re.findall(r'"url":"(http[^"]+)"', entry["message"])
    ]
    assert asked
    assert all(url.startswith(explorer.url) for url in asked)
    for name in ("row", "says", "lists"):
        assert browser.find_element("id", name).size["height"] > 50
    # Drawn rows have no tab of unusual ones; samples are opened in its place.
    until(browser, lambda page: page.find_elements("css selector", "#lists td"))
    browser.execute_script("document.getElementById('tab-samples').click()")
    until(browser, lambda page: page.find_elements("css selector", "#panel-samples td"))
    assert not browser.find_element("id", "problem").is_displayed()
    smallest = browser.execute_script(
        "return Math.min(...[...document.querySelectorAll('.chart text')].map("
        "(text) => text.getBoundingClientRect().height))"
    )
    assert smallest >= 10
    contrasts = browser.execute_script(
        CONTRASTS.replace("p, td, th", "p, td, th, button, label, h3, .said, .chip")
    )
    assert min(contrasts) >= 4.5


def test_themes(browser, explorer):  # noqa: F811
    colours = []
    for theme in ("light", "dark"):
        show(browser, explorer.url, 390, theme)
        colours.append(background(browser))
    assert colours[0] != colours[1]


def test_text_of_tables_is_not_markup(browser, classes):  # noqa: F811
    show(browser, classes.url, 1280)
    assert browser.find_elements("css selector", "main b, main i") == []
    assert "<i>x</i>" in text_of(browser, ".bars")


def test_cells_move_the_answers(browser, classes):  # noqa: F811
    show(browser, classes.url, 1280)
    before = text_of(browser, ".bars")
    cell = browser.find_element("id", "cell-0")
    cell.clear()
    cell.send_keys("30")
    until(browser, lambda page: text_of(page, ".bars") != before)
    until(browser, lambda page: "Unusual" in text_of(page, ".gauge"))
    guilty = browser.find_element("css selector", ".guilty-list button")
    assert guilty.text.startswith("a_rather_long_name")
    browser.find_element("css selector", ".cell .eye").click()
    until(browser, lambda page: "Typical" in text_of(page, ".gauge"))
    assert cell.get_attribute("value") == ""
    assert cell.get_attribute("placeholder")
    browser.execute_script("document.querySelector('.plot').scrollIntoView()")
    browser.find_element("css selector", ".plot").click()
    until(browser, lambda page: cell.get_attribute("value") != "")
    assert browser.get_log("browser") == []


def test_keyboard_only(browser, classes):  # noqa: F811
    from selenium.webdriver import ActionChains, Keys

    show(browser, classes.url, 390)
    named = "return document.activeElement.getAttribute('aria-label') || "
    named += "document.activeElement.id || document.activeElement.textContent"

    def tab_to(name):
        for _ in range(80):
            ActionChains(browser).send_keys(Keys.TAB).perform()
            focused = browser.execute_script(named)
            if focused.startswith(name):
                return
        raise AssertionError(f"{name} cannot be reached")

    tab_to("Next row")
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    picker = browser.find_element("css selector", "#row input")
    until(browser, lambda _: picker.get_attribute("value") == "1")
    tab_to("Hide a_rather")
    ActionChains(browser).send_keys(Keys.SPACE).perform()
    cell = browser.find_element("id", "cell-0")
    until(browser, lambda _: cell.get_attribute("value") == "")
    tab_to("a_rather_long_name_that_has_no_space_to_break_it_at, slider")
    ActionChains(browser).send_keys(Keys.ARROW_RIGHT).perform()
    until(browser, lambda _: cell.get_attribute("value") != "")
    tab_to("tab-unusual")
    ActionChains(browser).send_keys(Keys.ARROW_RIGHT).perform()
    until(browser, lambda page: page.find_elements("css selector", "#panel-samples td"))
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert browser.execute_script(outline) == "solid"
    tab_to("use sample 1")
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    empty = "return [...document.querySelectorAll('.cell.hidden')].length"
    until(browser, lambda page: page.execute_script(empty) == 0)


def test_many_classes_and_numbers_that_differ_little(browser):  # noqa: F811
    rng = np.random.default_rng(0)
    pressure = 1013.0 + 0.1 * rng.normal(size=130)
    X = pd.DataFrame({"air_pressure": pressure, "x": rng.normal(size=130)})
    model = plain_classifier("likelihood", covariance_type="diag")
    with explore(model.fit(X, np.arange(130) % 26), X) as opened:
        show(browser, opened.url, 1280)
        expected = browser.find_element("id", "said-0").text
        low, high = map(float, re.search(r"\(([\d.]+).([\d.]+)\)", expected).groups())
        assert 0.1 < high - low < 1.0
        until(
            browser, lambda page: "14 more" in page.find_element("id", "densities").text
        )
        name = browser.find_element("css selector", "label[for=cell-0]")
        assert name.text == "air_pressure"


def test_unusual_rows_can_be_clicked(browser, classes):  # noqa: F811
    show(browser, classes.url, 1280)
    first = until(
        browser, lambda page: page.find_elements("css selector", "#panel-unusual button")
    )[0]
    number = first.text.removeprefix("row ")
    first.click()
    picker = browser.find_element("css selector", "#row input")
    until(browser, lambda _: picker.get_attribute("value") == number)


def test_tradeoff_slider(browser, classes):  # noqa: F811
    from selenium.webdriver import Keys

    show(browser, classes.url, 1280)
    browser.find_element("css selector", ".path button").click()
    slider = until(browser, lambda page: page.find_elements("id", "tradeoff"))[0]
    slider.send_keys(Keys.ARROW_RIGHT * 2)
    until(browser, lambda page: "tradeoff 1." in text_of(page, ".path .words"))
    assert browser.get_log("browser") == []


def test_the_server_stops(browser):  # noqa: F811
    X, _ = make_table()
    opened = explore(MixtureDensity(1, covariance_type="diag").fit(X))
    show(browser, opened.url, 1280)
    opened.close()
    browser.find_element("css selector", ".eye").click()
    until(browser, lambda page: "run explore again" in text_of(page, "#problem"))
