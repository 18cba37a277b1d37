"""A hook of the site (mkdocs.yml): links out of docs/, and llms.txt."""
import os
import re

LINK = re.compile(r"\[([^\]]+)\]\(([^)\s#]*)(#[^)\s]*)?\)")
about, order = {}, []


def on_nav(nav, config, files):
    order[:] = nav.pages


def on_page_markdown(markdown, page, config, files):
    """The site has nothing beside docs/: a link to a file elsewhere becomes its text and its path."""
    folder = os.path.dirname(page.file.src_uri)

    def replaced(link):
        target = os.path.normpath(os.path.join("docs", folder, link[2]))
        is_here = re.match(r"\w+:", link[2]) or target.startswith("docs")
        return link[0] if is_here else f"{link[1]} (`{target}`)"

    about[page.file.src_uri] = first_sentence(markdown)
    return LINK.sub(replaced, markdown).replace("```rust,no_run", "```rust")


def first_sentence(markdown):
    """That of the first paragraph of a page, on one line and without links."""
    text = re.sub(r"<!--.*?-->|^```.*?^```", "", markdown, flags=re.M | re.S)
    prose = [part.strip() for part in re.split(r"\n\s*\n", text) if re.match(r"\s*[\w`*\[]", part)]
    return re.split(r"(?<=\.) ", re.sub(r"\s+", " ", LINK.sub(r"\1", prose[0])).replace("**", ""))[0] if prose else ""


def on_post_build(config):
    """A table of contents for readers that are programs (llmstxt.org)."""
    lines, last = [f"# {config.site_name}", "", f"> {config.site_description}"], None
    for page in order:
        section = page.ancestors[-1].title if page.ancestors else "Start here"
        if section != last:
            lines += ["", f"## {section}", ""]
            last = section
        lines.append(f"- [{page.title}]({page.file.dest_uri}): {about[page.file.src_uri]}")
    with open(os.path.join(config.site_dir, "llms.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
