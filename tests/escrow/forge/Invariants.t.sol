// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {IRentalEscrow} from "../src/IRentalEscrow.sol";
import {Handler} from "./Handler.sol";
import {MiniTest} from "./MiniTest.sol";
import {IEscrow, IUsdc, World} from "./World.sol";

/// @title Whatever people did, every unit is somebody's
contract InvariantsTest is MiniTest {
    Handler private handler;
    IEscrow private escrow;
    IUsdc private usdc;

    function setUp() external {
        handler = new Handler();
        handler.setUp();
        (escrow, usdc) = handler.parts();
    }

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    /// @dev What is no step of a story.
    function excludeSelectors() external view returns (FuzzSelector[] memory excluded) {
        excluded = new FuzzSelector[](1);
        excluded[0].addr = address(handler);
        excluded[0].selectors = new bytes4[](3);
        excluded[0].selectors[0] = World.setUp.selector;
        excluded[0].selectors[1] = Handler.freeze.selector;
        excluded[0].selectors[2] = Handler.thaw.selector;
    }

    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    /// I1, I12, I15, and what the handler saw of the others.
    function invariant_EveryUnitIsSomebodys() external view {
        require(bytes(handler.broken()).length == 0, handler.broken());
        same(usdc.balanceOf(address(escrow)), escrow.held() + escrow.credits() + handler.donated());
        address[7] memory people = handler.people();
        (uint256 credits, uint256 left) = (0, 0);
        for (uint256 i = 0; i < 7; ++i) {
            credits += escrow.creditOf(people[i]);
            left += escrow.budgetOf(people[i]).left;
        }
        same(escrow.credits(), credits);
        same(escrow.held(), handler.held() + left);
        uint256 open = handler.open().length;
        same(_listed(people[0], false) + _listed(people[1], false), open);
        same(_listed(people[2], true) + _listed(people[3], true), open);
    }

    /// I7: from wherever a run came to, a stranger and time close everything, in the worst mood of the token.
    function afterInvariant() external {
        handler.freeze();
        vm.warp(block.timestamp + 2 ** 33);
        handler.lookBack();
        bytes32[] memory ids = handler.open();
        for (uint256 i = 0; i < ids.length; ++i) {
            IRentalEscrow.State state = escrow.rental(ids[i]).state;
            vm.prank(address(0x5742));
            if (state == IRentalEscrow.State.Funded) escrow.cancel(ids[i]);
            if (state == IRentalEscrow.State.Active) escrow.settle(ids[i]);
        }
        address[7] memory people = handler.people();
        for (uint256 i = 0; i < 7; ++i) {
            if (escrow.budgetOf(people[i]).expiry != 0) escrow.closeBudget(people[i]);
        }
        same(escrow.held(), 0);
        handler.thaw();
        for (uint256 i = 0; i < 7; ++i) {
            if (escrow.creditOf(people[i]) != 0) escrow.withdrawFor(people[i]);
        }
        same(usdc.balanceOf(address(escrow)), handler.donated());
    }

    /// @dev Every entry is open, its own, and there once.
    function _listed(address account, bool asProvider) private view returns (uint256) {
        (bytes32[] memory ids, uint256 next) = escrow.openRentals(account, asProvider, 0, type(uint256).max);
        same(next, 0);
        IRentalEscrow.Rental[] memory found = escrow.rentals(ids);
        for (uint256 i = 0; i < ids.length; ++i) {
            same(asProvider ? found[i].provider : found[i].renter, account);
            IRentalEscrow.State state = found[i].state;
            require(state == IRentalEscrow.State.Funded || state == IRentalEscrow.State.Active, "I12");
            for (uint256 j = 0; j < i; ++j) {
                require(ids[i] != ids[j], "I12 twice");
            }
        }
        return ids.length;
    }
}
