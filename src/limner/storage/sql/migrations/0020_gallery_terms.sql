-- The words of the search index. A search for the beginning of a word asks which words begin so, and
-- then reads only the newest pictures of each; SQLite itself would first join all their lists.
CREATE VIRTUAL TABLE gallery_text_terms USING fts5vocab (gallery_text, instance);
