// Outputs that are trees, by the rules of headway.search.well_formed: which tokens open, close and fill nodes, and what
// may come next after the tokens of one hypothesis. A tree is written depth first; a leaf stands for one word.
#pragma once

#include "ids.hpp"

namespace headway {

// The tokens that write trees: the n-th of ``closing`` closes what the n-th of ``opening`` opens.
class Brackets {
  public:
    enum class Part : uint8_t { none, opens, closes, leaf };

    // ``max_openings``: so many nodes may open in a row. Throws std::invalid_argument for ids outside the vocabulary,
    // control tokens, a token of two meanings, openings without as many closings, and where nothing can be written.
    Brackets(const Ids &opening, const Ids &closing, const Ids &leaves, int max_openings, int vocab_size);

    Part part(int token) const { return part_[static_cast<size_t>(token)]; }
    int closing(int token) const { return closing_[static_cast<size_t>(token)]; } // of one that opens
    int max_openings() const { return max_openings_; }
    int size() const { return static_cast<int>(part_.size()); } // of the vocabulary

  private:
    void mark(const Ids &tokens, Part part, const char *what);

    std::vector<Part> part_; // of each token
    std::vector<int> closing_;
    int max_openings_;
};

// What the tokens of a hypothesis have written so far.
class Tree {
  public:
    // No rules: for hypotheses that need not be trees. Nothing else may be asked of it.
    Tree() = default;
    // ``leaves``: the token that must stand at each leaf, PAD where any may. Both are to outlive the tree.
    Tree(const Brackets &brackets, const Ids &leaves) : brackets_(&brackets), leaves_(&leaves) {}

    // Whether no tree can come of it after ``token``, where ``room`` tokens may follow that one (EOS counted).
    bool forbids(int token, int room) const;
    // The next token, one that is not forbidden.
    void add(int token);
    // How many leaves there are with ``token``.
    int leaves_with(int token) const { return written_ + (brackets_->part(token) == Brackets::Part::leaf ? 1 : 0); }

  private:
    const Brackets *brackets_ = nullptr;
    const Ids *leaves_ = nullptr;
    Ids open_;         // what must close the nodes that are open, the innermost last
    int written_ = 0;  // leaves
    int openings_ = 0; // in a row, up to now: above 0 the innermost node is empty
};

} // namespace headway
