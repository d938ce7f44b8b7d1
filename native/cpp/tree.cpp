#include "tree.hpp"

#include <stdexcept>
#include <string>

namespace headway {

Brackets::Brackets(const Ids &opening, const Ids &closing, const Ids &leaves, int max_openings, int vocab_size)
    : part_(static_cast<size_t>(vocab_size), Part::none), closing_(static_cast<size_t>(vocab_size), PAD), max_openings_(max_openings) {
    if (opening.size() != closing.size())
        throw std::invalid_argument("trees have " + std::to_string(opening.size()) + " tokens that open and " +
                                    std::to_string(closing.size()) + " that close; wanted as many of each");
    if (opening.empty() || leaves.empty())
        throw std::invalid_argument("trees have " + std::to_string(opening.size()) + " labels and " + std::to_string(leaves.size()) +
                                    " leaves; wanted 1 or more of each");
    if (max_openings < 1)
        throw std::invalid_argument(std::to_string(max_openings) + " nodes of a tree may open in a row; wanted 1 or more");
    mark(opening, Part::opens, "opening token");
    mark(closing, Part::closes, "closing token");
    mark(leaves, Part::leaf, "leaf");
    for (size_t i = 0; i < opening.size(); ++i) closing_[static_cast<size_t>(opening[i])] = closing[i];
}

void Brackets::mark(const Ids &tokens, Part part, const char *what) {
    const auto refuse = [what](size_t place, int token, const std::string &why) {
        throw std::invalid_argument(std::string(what) + " " + std::to_string(place + 1) + " of trees is the token " +
                                    std::to_string(token) + why);
    };
    for (size_t place = 0; place < tokens.size(); ++place) {
        const int token = tokens[place];
        if (token < 0 || static_cast<size_t>(token) >= part_.size())
            refuse(place, token, "; wanted 0 to " + std::to_string(part_.size() - 1) + ", the ids of the vocabulary");
        if (token == PAD || token == BOS || token == EOS) refuse(place, token, ", a control token; wanted one of text");
        Part &own = part_[static_cast<size_t>(token)];
        if (own != Part::none) refuse(place, token, ", which has a place in trees already; wanted one meaning a token");
        own = part;
    }
}

bool Tree::forbids(int token, int room) const {
    const auto missing = static_cast<int>(leaves_->size()) - written_;
    const auto depth = static_cast<int>(open_.size());
    if (token == EOS) return missing > 0 || depth > 0;
    switch (brackets_->part(token)) {
    case Brackets::Part::opens: // the node's end takes a token too, and so does EOS
        return missing == 0 || openings_ >= brackets_->max_openings() || room < missing + depth + 2;
    case Brackets::Part::closes:
        return depth == 0 || openings_ > 0 || open_.back() != token;
    case Brackets::Part::leaf: {
        if (missing == 0) return true;
        const int wanted = (*leaves_)[static_cast<size_t>(written_)];
        return wanted != PAD && wanted != token;
    }
    default:
        return true;
    }
}

void Tree::add(int token) {
    const Brackets::Part part = brackets_->part(token);
    if (part == Brackets::Part::opens) {
        open_.push_back(brackets_->closing(token));
        ++openings_;
        return;
    }
    openings_ = 0;
    if (part == Brackets::Part::leaf) ++written_;
    if (part == Brackets::Part::closes) open_.pop_back();
}

} // namespace headway
