"""The scenes of the word problems. Numbers are {a}, {b}, {c} in the order of the scene's plan."""

from __future__ import annotations

from dataclasses import dataclass

NAMES = (
    "Ada", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Hugo", "Iris", "Jack", "Kira", "Leo", "Mia", "Noah",
    "Olga", "Paul", "Rosa", "Sam", "Tina", "Uma", "Victor", "Wendy", "Yara", "Zoe", "Anna", "Carlos", "Fatima", "Ivan",
    "Lena", "Omar", "Priya", "Tom",
)  # fmt: skip

_FOOD = ("apples", "pears", "plums", "cookies", "muffins", "oranges", "lemons", "eggs", "nuts", "peaches")
_SMALL = ("marbles", "stickers", "coins", "cards", "stamps", "shells", "beads", "buttons", "badges", "stones")
_DESK = ("pens", "pencils", "books", "notebooks", "crayons", "rulers", "photos", "magnets")
_ANY = _FOOD + _SMALL + _DESK
_NONE = ("",)


@dataclass(frozen=True, slots=True)
class Scene:
    """One kind of story: its plan of computation, what it counts, its wordings and the reasons for the plan."""

    plan: str
    unit: str
    things: tuple[str, ...]
    problems: tuple[str, ...]
    reasons: tuple[str, ...]


SCENES: tuple[Scene, ...] = (
    Scene(
        "add", "{things}", _ANY,
        (
            "{name} has {a} {things} and [gets|finds|buys] {b} more. How many {things} is that [now|in total]?",
            "{name} had {a} {things}. {other} [gave|brought] {name} {b} more. How many {things} [are there now|does "
            "{name} have now]?",
            "If {name} has {a} {things} and gets {b} more, how many [{things} |]is that?",
            "[Word problem|Problem]: {name} starts with {a} {things} and adds {b}. What is the total?",
        ),
        ("{name} gets more {things}, so we add.", "More {things} come in, so we add {b} to {a}."),
    ),
    Scene(
        "add", "{things}", _ANY,
        (
            "{name} has {a} {things} and {other} has {b} {things}. How many [{things} |]do they have together?",
            "{name} counts {a} {things}, {other} counts {b}. How many {things} is that in [all|total]?",
            "Together, how many {things} do {name} and {other} have if {name} has {a} and {other} has {b}?",
        ),
        ("We add what {name} and {other} have.", "Together means that we add {a} and {b}."),
    ),
    Scene(
        "add", "km", _NONE,
        (
            "{name} [rides|drives|walks] {a} km on Monday and {b} km on Tuesday. How many km is that in [total|all]?",
            "A trip has two parts of {a} km and {b} km. How long is the [whole|complete] trip?",
            "{name} drove {a} km last week and {b} km this week. How far did {name} drive in total?",
        ),
        ("We add the two distances.", "The total is the sum of both parts."),
    ),
    Scene(
        "add", "years", _NONE,
        (
            "A [castle|church|wall|village] is {a} years old. How old will it be in {b} years?",
            "A [house|tree|bridge|tower] is {a} years old. How old is it {b} years from now?",
            "One [oak|house|book] is {a} years old, another is {b} years older. How old is the other one?",
        ),
        ("We add {b} years to {a}.", "Later means older, so we add {b}."),
    ),
    Scene(
        "subtract", "{things}", _ANY,
        (
            "{name} has {a} {things} and [gives {other} {b}|loses {b}|sells {b}] of them. How many {things} are left?",
            "There are {a} {things} in a [box|bag|basket]. {name} takes {b} out. How many [{things} |]remain?",
            "If {name} had {a} {things} and gave away {b}, how many are left?",
            "{name} starts with {a} {things} and uses {b}. How many {things} does {name} still have?",
        ),
        ("Some {things} go away, so we subtract.", "We take {b} away from {a}."),
    ),
    Scene(
        "subtract", "{things}", _ANY,
        (
            "{name} has {a} {things}, {other} has {b}. How many more {things} does {name} have?",
            "How many more {things} does {name} have than {other}, if {name} has {a} and {other} has {b}?",
            "{name} [collected|counted|found] {a} {things} and {other} {b}. [What is the difference|How many "
            "fewer does {other} have]?",
        ),
        ("We compare {name} and {other}, so we subtract.", "The difference is {a} minus {b}."),
    ),
    Scene(
        "subtract", "dollars", ("bike", "phone", "coat", "desk", "lamp", "tent", "table", "camera"),
        (
            "{name} has {a} dollars and buys a {things} for {b} dollars. How much [money |]is left?",
            "A {things} costs {b} dollars. {name} pays with {a} dollars. How much change does {name} get?",
            "{name} had {a} dollars and spent {b} dollars on a {things}. How many dollars are left?",
        ),
        ("{name} pays for the {things}, so we subtract the price.", "We take the price of the {things} from {a}."),
    ),
    Scene(
        "subtract", "pages", _NONE,
        (
            "A book has {a} pages and {name} has read {b}. How many pages are left?",
            "{name} has to read {a} pages and has [already read|finished] {b} of them. How many remain?",
        ),
        ("We subtract the pages that {name} has read.", "What is left is {a} minus {b}."),
    ),
    Scene(
        "subtract", "people", ("ship", "train", "hall", "theatre", "stadium", "cinema"),
        (
            "There are {a} people in a {things}. {b} [go|leave]. How many people are left?",
            "A {things} holds {a} people. {b} are already there. How many [more people|people more] can come?",
        ),
        ("We take {b} people away from {a}.", "The {things} has {a}, so we subtract {b}."),
    ),
    Scene(
        "multiply", "{things}", _ANY,
        (
            "{name} has {b} [boxes|bags|packs] with {a} {things} each. How many {things} [is that|are there in total]?",
            "Each [box|bag|pack] holds {a} {things}. How many {things} are in {b} of them?",
            "There are {a} {things} in one pack. {name} buys {b} packs. How many {things} does {name} get?",
            "If one bag holds {a} {things}, how many {things} do {b} bags hold?",
        ),
        ("There are {b} groups of {a} {things}, so we multiply.", "Equal groups mean that we multiply {a} by {b}."),
    ),
    Scene(
        "multiply", "dollars", ("book", "ball", "cake", "lamp", "ticket", "hat", "plant", "chair"),
        (
            "One {things} costs {a} dollars. How much do {b} of them cost?",
            "{name} buys {b} of the same {things} for {a} dollars each. What is the total [price|cost]?",
            "A {things} is {a} dollars. What does {name} pay for {b}?",
        ),
        ("Each {things} has the same price, so we multiply.", "We multiply the price by {b}."),
    ),
    Scene(
        "multiply", "km", ("car", "train", "bus", "truck", "coach"),
        (
            "A {things} [travels|drives|goes] {a} km [every|each] hour. How far does it get in {b} hours?",
            "How many km does a {things} cover in {b} hours at {a} km per hour?",
            "{name} rides a {things} at {a} km per hour for {b} hours. How far is that?",
        ),
        ("Distance is speed times time.", "We multiply {a} km per hour by {b} hours."),
    ),
    Scene(
        "multiply", "seats", ("hall", "cinema", "theatre", "train", "school"),
        (
            "A {things} has {b} rows with {a} seats each. How many seats are there?",
            "There are {a} seats in each of the {b} rows of a {things}. How many seats is that?",
        ),
        ("There are {b} equal rows, so we multiply.", "Rows times seats gives the total."),
    ),
    Scene(
        "multiply", "square metres", ("garden", "room", "field", "yard", "floor"),
        (
            "A {things} is {a} metres long and {b} metres wide. What is its area?",
            "How big is a {things} that [measures|is] {a} metres by {b} metres?",
        ),
        ("The area is length times width.", "We multiply the two sides of the {things}."),
    ),
    Scene(
        "multiply", "dollars", _NONE,
        (
            "{name} saves {a} dollars [every|each|a] month. How much is that in {b} months?",
            "{name} earns {a} dollars an hour. How much does {name} get for {b} hours?",
        ),
        ("The same amount comes {b} times, so we multiply.", "We multiply {a} by {b}."),
    ),
    Scene(
        "divide", "{things}", _ANY,
        (
            "{name} shares {a} {things} [equally|fairly] among {b} friends. How many [{things} |]does each friend get?",
            "{a} {things} are [packed|put] into {b} equal boxes. How many {things} go into each box?",
            "If {b} children share {a} {things} equally, how many does each child get?",
            "{name} has {a} {things} and {b} bags. Each bag gets the same number. How many {things} are in one bag?",
        ),
        ("Sharing equally means that we divide.", "We divide the {things} into {b} equal parts."),
    ),
    Scene(
        "divide", "boxes", _ANY,
        (
            "How many boxes does {name} need for {a} {things} if {b} fit into one box?",
            "{name} packs {a} {things} into boxes of {b}. How many boxes is that?",
        ),
        ("Each box takes {b} {things}, so we divide.", "We count how often {b} fits into {a}."),
    ),
    Scene(
        "divide", "dollars", ("tickets", "books", "plants", "lamps", "chairs", "cakes"),
        (
            "{b} {things} cost {a} dollars [together|in total]. How much is one?",
            "{name} pays {a} dollars for {b} {things}. What is the price of one?",
        ),
        ("All {things} cost the same, so we divide.", "One costs {a} divided by {b}."),
    ),
    Scene(
        "percent", "{things}", _ANY,
        (
            "{name} has {b} {things} and {a} % of them are [red|blue|green|new|old]. How many is that?",
            "{a} % of the {b} {things} in a shop [belong to {name}|are sold]. How many {things} is that?",
            "{name} gives away {a} percent of {b} {things}. How many {things} does {name} give away?",
        ),
        ("We need {a} % of {b}.", "The part is {a} % of all {things}."),
    ),
    Scene(
        "discount", "dollars", ("bike", "lamp", "coat", "desk", "phone", "chair", "tent", "jacket"),
        (
            "A {things} costs {b} dollars. It is reduced by {a} %. What is the new price?",
            "{name} buys a {things} for {b} dollars with {a} % off. How much does {name} pay?",
            "What does a {b} dollar {things} cost after a discount of {a} percent?",
        ),
        ("We find the discount and take it off the price.", "First the discount, then the new price of the {things}."),
    ),
    Scene(
        "add_subtract", "{things}", _ANY,
        (
            "{name} has {a} {things}, gets {b} more and then [loses|sells|gives away] {c}. How many {things} are left?",
            "{name} starts with {a} {things}. {other} brings {b} more, then {name} uses {c}. How many remain?",
        ),
        ("First we add {b}, then we subtract {c}.", "More {things} come, then some go: we add and then subtract."),
    ),
    Scene(
        "subtract_add", "people", ("bus", "train", "boat", "tram"),
        (
            "A {things} carries {a} people. At a stop {b} get off and {c} get on. How many people are on it now?",
            "{a} people are on a {things}. {b} leave and {c} come in. How many are there now?",
        ),
        ("First {b} leave, then {c} come in.", "People leave the {things}, so we subtract, then we add the new ones."),
    ),
    Scene(
        "subtract_add", "dollars", _NONE,
        (
            "{name} has {a} dollars, spends {b} and then earns {c}. How much money does {name} have now?",
            "{name} had {a} dollars. {name} paid {b} dollars to {other} and got {c} dollars from a friend. How much is "
            "that now?",
        ),
        ("{name} spends first and earns later.", "First we subtract {b}, then we add {c}."),
    ),
    Scene(
        "add_add", "{things}", _ANY,
        (
            "{name} [finds|buys|picks] {a} {things} on Monday, {b} on Tuesday and {c} on Friday. How many is that?",
            "There are three bags with {a}, {b} and {c} {things}. How many {things} are there in [all|total]?",
        ),
        ("We add all three numbers.", "The total is the sum of {a}, {b} and {c}."),
    ),
    Scene(
        "multiply_add", "{things}", _ANY,
        (
            "{name} buys {b} [packs|boxes|bags] of {a} {things} and gets {c} extra. How many {things} are there?",
            "{name} has {b} boxes with {a} {things} each and {c} loose ones. How many {things} does {name} have?",
        ),
        ("First we multiply for the groups, then we add {c}.", "There are {b} groups of {a}, and {c} more."),
    ),
    Scene(
        "multiply_subtract", "{things}", _ANY,
        (
            "{name} has {b} [packs|boxes|bags] of {a} {things} and [uses|sells|gives away] {c}. How many are left?",
            "There are {b} bags with {a} {things} each. {name} takes {c} {things} away. How many remain?",
        ),
        ("First we multiply for the groups, then we subtract {c}.", "There are {b} groups of {a}, less {c}."),
    ),
    Scene(
        "multiply_subtract", "dollars", _NONE,
        (
            "{name} earns {a} dollars an hour and works {b} hours. Then {name} spends {c} dollars. How much is left?",
            "{name} works {b} hours for {a} dollars each and pays {c} dollars for lunch. How much money remains?",
        ),
        ("First the pay, then we subtract what {name} spends.", "We multiply for the pay and subtract {c}."),
    ),
    Scene(
        "add_multiply", "{things}", _ANY,
        (
            "{name} gets {a} {things} in the morning and {b} in the evening, every day. How many is that in {c} days?",
            "Each of {c} boxes holds {a} red and {b} blue {things}. How many {things} are there?",
        ),
        ("First one group of {a} and {b}, then {c} times that.", "We add {a} and {b}, then multiply by {c}."),
    ),
    Scene(
        "subtract_divide", "{things}", _ANY,
        (
            "{name} has {a} {things}, keeps {b} and shares the rest equally among {c} friends. How many does each get?",
            "Of {a} {things}, {b} are broken. The others go into {c} equal boxes. How many {things} are in each box?",
        ),
        ("First we take {b} away, then we share the rest.", "We subtract {b}, then divide by {c}."),
    ),
    Scene(
        "add_divide", "{things}", _ANY,
        (
            "{name} has {a} {things}, {other} has {b}. They share all of them equally among {c} people. How many does "
            "each person get?",
            "{a} {things} and {b} more are packed into {c} equal bags. How many are in each bag?",
        ),
        ("First we add, then we share.", "We add {a} and {b}, then divide by {c}."),
    ),
    Scene(
        "mean", "points", _NONE,
        (
            "{name} scored {a} points in one game and {b} in the next. What is the average?",
            "What is the [average|mean] score of {name} after games with {a} and {b} points?",
        ),
        ("The average is the sum divided by 2.", "We add both scores and divide by 2."),
    ),
)  # fmt: skip
