// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

/// @dev As much of Foundry's cheat codes as the tests use.
interface Vm {
    function prank(address sender) external;
    function warp(uint256 time) external;
    function addr(uint256 key) external view returns (address);
    function sign(uint256 key, bytes32 digest) external view returns (uint8 v, bytes32 r, bytes32 s);
    function expectRevert(bytes calldata data) external;
    function expectRevert(bytes4 selector) external;
    function readFile(string calldata path) external view returns (string memory);
    function parseBytes(string calldata text) external view returns (bytes memory);
    function parseJsonUintArray(string calldata json, string calldata key) external view returns (uint256[] memory);
    function assume(bool condition) external pure;
}

/// @title What a test needs, and nothing else
abstract contract MiniTest {
    Vm internal constant vm = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);

    function same(uint256 found, uint256 wanted) internal pure {
        require(found == wanted, "not the same number");
    }

    function same(bytes32 found, bytes32 wanted) internal pure {
        require(found == wanted, "not the same word");
    }

    function same(address found, address wanted) internal pure {
        require(found == wanted, "not the same address");
    }

    function bound(uint256 x, uint256 least, uint256 most) internal pure returns (uint256) {
        return least + x % (most - least + 1);
    }
}
