// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

/// @title Which rentals of an account are open, from storage alone
/// @dev Each open rental is on two lists, its renter's and its provider's, and knows its place on both, so that leaving
/// them costs the same however long they are.
library OpenRentals {
    struct Place {
        uint128 asRenter;
        uint128 asProvider;
    }

    struct Lists {
        mapping(address account => bytes32[]) ofRenter;
        mapping(address account => bytes32[]) ofProvider;
        mapping(bytes32 id => Place) places;
    }

    function add(Lists storage lists, bytes32 id, address renter, address provider) internal {
        bytes32[] storage mine = lists.ofRenter[renter];
        bytes32[] storage theirs = lists.ofProvider[provider];
        lists.places[id] = Place(uint128(mine.length), uint128(theirs.length));
        mine.push(id);
        theirs.push(id);
    }

    function remove(Lists storage lists, bytes32 id, address renter, address provider) internal {
        Place memory place = lists.places[id];
        delete lists.places[id];
        bytes32 moved = _takeOut(lists.ofRenter[renter], place.asRenter);
        if (moved != id) lists.places[moved].asRenter = place.asRenter;
        moved = _takeOut(lists.ofProvider[provider], place.asProvider);
        if (moved != id) lists.places[moved].asProvider = place.asProvider;
    }

    /// @return ids At most `limit`, from `cursor` on. @return next Where the next page starts, 0 if there is none.
    function page(Lists storage lists, address account, bool asProvider, uint256 cursor, uint256 limit)
        internal
        view
        returns (bytes32[] memory ids, uint256 next)
    {
        bytes32[] storage list = asProvider ? lists.ofProvider[account] : lists.ofRenter[account];
        uint256 left = cursor < list.length ? list.length - cursor : 0;
        ids = new bytes32[](left < limit ? left : limit);
        for (uint256 i = 0; i < ids.length; ++i) {
            ids[i] = list[cursor + i];
        }
        if (ids.length < left) next = cursor + ids.length;
    }

    /// @dev The last of a list takes the place of the one that leaves.
    function _takeOut(bytes32[] storage list, uint256 place) private returns (bytes32 moved) {
        moved = list[list.length - 1];
        list[place] = moved;
        list.pop();
    }
}
